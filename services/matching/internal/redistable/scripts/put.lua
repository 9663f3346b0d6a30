-- Stores chunks of one domain. Refused where the epoch is missing.
--
-- KEYS: epoch, tasklists, then per chunk: column, heads
-- ARGV: number of tasklists, the tasklists, then per chunk: ready at, type, triggers
-- Returns 1, or 0 where the epoch is lost.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local lists = tonumber(ARGV[1])
redis.call('SADD', KEYS[2], unpack(ARGV, 2, lists + 1))
local a = lists + 2
for k = 3, #KEYS, 2 do
  redis.call('ZADD', KEYS[k], ARGV[a], ARGV[a + 2])
  redis.call('ZADD', KEYS[k + 1], 'LT', ARGV[a], ARGV[a + 1])
  a = a + 3
end
return 1
