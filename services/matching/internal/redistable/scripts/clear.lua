-- Clears tables of a life that is over.
--
-- KEYS: epoch, tasklists, then keys to remove: the heads of tasklists and their columns
-- ARGV: what the epoch key held, then tasklists whose keys are all among KEYS
-- Returns 1, or 0 where a new life has begun: nothing was changed.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
  return 0
end
for i = 3, #KEYS do
  redis.call('UNLINK', KEYS[i])
end
for i = 2, #ARGV do
  redis.call('SREM', KEYS[2], ARGV[i])
end
return 1
