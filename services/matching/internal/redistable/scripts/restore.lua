-- Adds bookings of a domain and, with the last ones, declares a shard's tables whole.
-- Refused where the epoch is not the one under which the bookings were asked for:
-- what was booked before the memory was lost again would be missing.
--
-- KEYS: epoch, then per booking of another limit: slots
-- ARGV: epoch, whole (0 or 1), per limit: number of bookings, then per booking: until, booking
-- Returns 1, or 0 where the epoch is another.
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 2) ~= ARGV[1] then
  return 0
end
local a = 3
for k = 2, #KEYS do
  local n = tonumber(ARGV[a])
  redis.call('ZADD', KEYS[k], 'GT', unpack(ARGV, a + 1, a + 2 * n))
  a = a + 1 + 2 * n
end
if ARGV[2] == '1' then
  redis.call('SET', KEYS[1], 'w' .. ARGV[1])
end
return 1
