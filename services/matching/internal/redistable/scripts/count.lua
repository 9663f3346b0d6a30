-- Counts triggers in the next chunks of one column.
--
-- KEYS: column
-- ARGV: chunks to skip, chunks to count
-- Returns how many triggers they hold, how many chunks there were, and the rank of the first; 0 = it has none.
local first, n = tonumber(ARGV[1]), tonumber(ARGV[2])
local chunks = redis.call('ZRANGE', KEYS[1], first, first + n - 1)
local triggers, rank = 0, 0
for i = 1, #chunks do
  triggers = triggers + math.floor(#chunks[i] / 28)
end
if chunks[1] and #chunks[1] % 28 >= 16 then
  rank = tonumber(redis.call('ZSCORE', KEYS[1], chunks[1]))
end
return {triggers, #chunks, rank}
