-- Stores chunks of one domain. Refused where the epoch is missing.
--
-- KEYS: epoch, tasklists, then the heads keys, then a column per chunk
-- ARGV: number of tasklists, the tasklists, number of heads keys,
--       per heads key: number of columns, per column: ready at, type;
--       then per chunk: ready at, triggers
-- Returns 1, or 0 where the epoch is lost.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
local lists = tonumber(ARGV[1])
redis.call('SADD', KEYS[2], unpack(ARGV, 2, lists + 1))
local heads = tonumber(ARGV[lists + 2])
local a = lists + 3
for k = 3, heads + 2 do
  local n = tonumber(ARGV[a])
  redis.call('ZADD', KEYS[k], 'LT', unpack(ARGV, a + 1, a + 2 * n))
  a = a + 1 + 2 * n
end
for k = heads + 3, #KEYS do
  redis.call('ZADD', KEYS[k], 'LT', ARGV[a], ARGV[a + 1])
  a = a + 2
end
return 1
