-- Counts the triggers of one column.
--
-- KEYS: column
local bytes, at = 0, 0
repeat
  local chunks = redis.call('ZRANGE', KEYS[1], at, at + 99)
  for i = 1, #chunks do
    bytes = bytes + #chunks[i]
  end
  at = at + 100
until #chunks < 100
return bytes / 28
