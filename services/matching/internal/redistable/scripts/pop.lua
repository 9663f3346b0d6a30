-- Takes triggers of one tasklist in order and books a slot for each that needs one.
-- The rules are those of core/table; the conformance suite holds the two together.
--
-- KEYS: epoch, per candidate: column, heads; then per limited type: slots
-- ARGV: wanted, now, until, candidates, limited types,
--       per candidate: priority, type, hint (its head or an older age), limited type (0 = none);
--       per limited type: limit
-- Returns {} where the epoch is lost, else {taken, heads, full}:
--   taken: candidate, ready at, triggers, ...
--   heads: ready at ('' = empty), gone, ... of the first candidates, as many as were looked at
--   full:  limited types without a free slot
-- Scores stay strings: Lua would print them with 14 digits.
local TRIGGER, BOOKING = 28, 20
local left, now, till = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local candidates, limited = tonumber(ARGV[4]), tonumber(ARGV[5])

local epoch = redis.call('GET', KEYS[1])
if not epoch or (limited > 0 and string.sub(epoch, 1, 1) ~= 'w') then
  return {}
end

local function column(i) return KEYS[2 * i] end
local function slots(t) return KEYS[1 + 2 * candidates + t] end
local function priority(i) return ARGV[2 + 4 * i] end
local function hint(i) return tonumber(ARGV[4 + 4 * i]) end
local function limit_of(i) return tonumber(ARGV[5 + 4 * i]) end

local free = {}    -- by limited type, once met
local head = {}    -- by candidate: triggers of its first chunk, false = empty
local score = {}   -- by candidate: the chunk's score as a string
local age = {}     -- by candidate: the score as a number
local gone = {}    -- by candidate: triggers taken
local taken, seen = {}, 0

local ahead = {}   -- by candidate: its second chunk and that one's score; nothing = empty

-- Each call out of a script costs microseconds, so two chunks are read at once.
local function look(i)
  local two = redis.call('ZRANGE', column(i), 0, 1, 'WITHSCORES')
  head[i], score[i], ahead[i] = two[1] or false, two[2], {two[3], two[4]}
  age[i] = two[2] and tonumber(two[2])
end

-- Goes on to the second chunk when the first is taken.
local function advance(i)
  if not ahead[i][1] then
    head[i] = false
  elseif ahead[i].last then
    look(i)
  else
    head[i], score[i], age[i] = ahead[i][1], ahead[i][2], tonumber(ahead[i][2])
    ahead[i].last = true
  end
end

local function room(t)
  if not free[t] then
    redis.call('ZREMRANGEBYSCORE', slots(t), '-inf', now)
    free[t] = tonumber(ARGV[5 + 4 * candidates + t]) - redis.call('ZCARD', slots(t))
  end
  return free[t]
end

-- Books the first n triggers of a chunk; returns those that were not booked before.
local function book(t, chunk, n)
  local members = {}
  for j = 0, n - 1 do
    members[j + 1] = string.sub(chunk, j * TRIGGER + 1, j * TRIGGER + BOOKING)
  end
  local known = redis.call('ZMSCORE', slots(t), unpack(members))
  local add, kept, meant = {}, {}, {}
  for j = 1, n do
    if not known[j] and not meant[members[j]] then
      meant[members[j]] = true
      add[#add + 1] = till
      add[#add + 1] = members[j]
      kept[#kept + 1] = string.sub(chunk, (j - 1) * TRIGGER + 1, j * TRIGGER)
    end
  end
  if #add > 0 then
    redis.call('ZADD', slots(t), unpack(add))
  end
  free[t] = free[t] - #kept
  return table.concat(kept), #kept
end

local function take(i)
  local chunk, t = head[i], limit_of(i)
  local n = math.min(left, #chunk / TRIGGER)
  local got, count
  if t == 0 then
    got, count = string.sub(chunk, 1, n * TRIGGER), n
  else
    n = math.min(n, room(t))
    if n <= 0 then
      return
    end
    got, count = book(t, chunk, n)
  end
  left = left - count
  gone[i] = gone[i] + n
  if count > 0 then
    taken[#taken + 1] = i
    taken[#taken + 1] = score[i]
    taken[#taken + 1] = got
  end
  redis.call('ZREM', column(i), chunk)
  if n * TRIGGER < #chunk then
    redis.call('ZADD', column(i), score[i], string.sub(chunk, n * TRIGGER + 1))
    look(i)
  else
    advance(i)
  end
end

local function live(i)
  local t = limit_of(i)
  return head[i] and (t == 0 or not free[t] or free[t] > 0)
end

local from = 1
while from <= candidates and left > 0 do
  local to = from
  while to < candidates and priority(to + 1) == priority(from) do
    to = to + 1
  end
  while left > 0 do
    local best
    for i = from, seen do
      if live(i) and (not best or age[i] < age[best]) then
        best = i
      end
    end
    if seen < to and (not best or hint(seen + 1) <= age[best]) then
      seen = seen + 1
      gone[seen] = 0
      look(seen)
    elseif best then
      take(best)
    else
      break
    end
  end
  from = to + 1
end

local heads, full = {}, {}
local gained, lost = {}, {}    -- changes of a heads key
for i = 1, seen do
  local name = ARGV[3 + 4 * i]
  if head[i] then
    heads[#heads + 1] = score[i]
    if age[i] ~= hint(i) then
      gained[#gained + 1] = score[i]
      gained[#gained + 1] = name
    end
  else
    heads[#heads + 1] = ''
    lost[#lost + 1] = name
  end
  heads[#heads + 1] = gone[i]
  if i == seen or priority(i + 1) ~= priority(i) then
    local key = KEYS[2 * i + 1]
    if #gained > 0 then
      redis.call('ZADD', key, unpack(gained))
    end
    if #lost > 0 then
      redis.call('ZREM', key, unpack(lost))
    end
    gained, lost = {}, {}
  end
end
for t = 1, limited do
  if free[t] and free[t] <= 0 then
    full[#full + 1] = t
  end
end
return {taken, heads, full}
