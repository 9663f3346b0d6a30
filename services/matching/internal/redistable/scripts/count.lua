-- Counts triggers in the next chunks of one column.
--
-- KEYS: column
-- ARGV: chunks to skip, chunks to count
-- Returns how many triggers they hold, and how many chunks there were.
local first, n = tonumber(ARGV[1]), tonumber(ARGV[2])
local chunks = redis.call('ZRANGE', KEYS[1], first, first + n - 1)
local bytes = 0
for i = 1, #chunks do
  bytes = bytes + #chunks[i]
end
return {bytes / 28, #chunks}
