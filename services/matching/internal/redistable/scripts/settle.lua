-- Extends and releases bookings of one limit.
--
-- KEYS: slots
-- ARGV: limit (0 = none), extensions, per extension: until, booking; then bookings to release
-- Returns {freed, missing extension, ...}, extensions counted from 0.
local limit, extensions = tonumber(ARGV[1]), tonumber(ARGV[2])
local out = {0}
if extensions > 0 then
  local members = {}
  for i = 1, extensions do
    members[i] = ARGV[2 + 2 * i]
  end
  local known = redis.call('ZMSCORE', KEYS[1], unpack(members))
  for i = 1, extensions do
    if not known[i] then
      out[#out + 1] = i - 1
    end
  end
  redis.call('ZADD', KEYS[1], 'XX', 'GT', unpack(ARGV, 3, 2 + 2 * extensions))
end
local first = 3 + 2 * extensions
if first <= #ARGV then
  local before = redis.call('ZCARD', KEYS[1])
  local removed = redis.call('ZREM', KEYS[1], unpack(ARGV, first))
  if limit > 0 and before >= limit and before - removed < limit then
    out[1] = 1
  end
end
return out
