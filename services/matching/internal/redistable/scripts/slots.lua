-- Counts the slots in use of limits. See call.lua for how they lie.
--
-- KEYS: slots per limit
-- Returns a number per limit.
local info = redis.call('INFO', 'server')
local at = string.find(info, 'run_id:', 1, true)
local run = string.sub(info, at + 7, at + 22)    -- 64 bits of it
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local out = {}
for k = 1, #KEYS do
  out[k] = 0
  if string.match(redis.call('HGET', KEYS[k], 'all') or '', '^%w+') == run then
    local all = redis.call('HGETALL', KEYS[k])
    for i = 1, #all, 2 do
      local held, till = string.match(all[i + 1], '^%d+ %d+ (%d+) (%d+)$')
      if held and string.match(all[i], '^s%d') and tonumber(till) > now then
        out[k] = out[k] + tonumber(held)
      end
    end
  end
end
return out
