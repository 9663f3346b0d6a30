-- Begins a life of a shard's tables of a domain, unless one is there.
--
-- KEYS: epoch, tasklists
-- ARGV: the epoch of a new life
-- Returns {1, epoch, tasklists} of the life there is; or, where tables of a life that is over
-- were left, {0, what the epoch key holds, tasklists}: they are to be cleared first.
local info = redis.call('INFO', 'server')
local at = string.find(info, 'run_id:', 1, true)
local run = string.sub(info, at + 7, at + 22)    -- 64 bits of it
local value = redis.call('GET', KEYS[1]) or ''
local lists = redis.call('SMEMBERS', KEYS[2])
local by, epoch = string.match(value, '^(%w+) (%w+)$')
if by == run then
  return {1, epoch, lists}
end
if #lists > 0 then
  return {0, value, lists}
end
redis.call('SET', KEYS[1], run .. ' ' .. ARGV[1])
return {1, ARGV[1], lists}
