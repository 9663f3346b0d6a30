-- Carries out one call of a shard about one domain: sets its entries in limits, stores
-- chunks, takes triggers. The rules are those of core/table; the conformance suite holds the
-- two together.
--
-- KEYS: epoch, tasklists, slots or rate per stance, heads per tasklist stored to, a column per column
--       stored to; then per want: heads, a column per candidate
-- ARGV: epoch, shard, shards, seq epoch, seq call, stances, tasklists, columns, wants,
--       per stance: max, held, ask, wait, expiry in ms, 0; of a rate: burst, 0, 0, 0, 0, interval in µs;
--       per tasklist: its name, number of columns, per column: head, name;
--       per column: number of chunks, per chunk: place, packed triggers;
--       per want: tasklist, wanted, ahead, candidates, per candidate: priority, name,
--         hint (its head or an older age), length of its path, the path's stances (from 1)
-- Returns {1} where the epoch is lost, {2} where a later call was carried out, else
-- {0, limits, per want: {taken, heads, blocked}}:
--   limits:  used, leased, restoring, others, ... per stance; of a rate: 0, wait in µs, 0, 0
--   taken:   candidate, place, packed triggers, how many of these are ahead, ...
--   heads:   ready at ('' = empty), gone, ... of the first candidates, as many as were looked at
--   blocked: stance, why (1 full, 2 in line, 3 restoring, 4 rated), ...
--
-- A limit is a hash. s<shard>: "epoch call held until" of the shard's entry; all:
-- "run used entries soon turns line" of the whole. run: the id of the server's run that wrote
-- it, under another all is void; used: what the entries hold in sum; entries: how many there are;
-- soon: no entry that holds something expires before; turns and line: see core/table, the line as
-- "shard priority turn seen short;" for each that waits.
--
-- A rate is a string: "run next", the theoretical arrival time of its next start in Unix µs.
--
-- A chunk is a member of its column: triggers, scored by their age; or, where groups share the column, triggers and a tail of
-- their age and step, scored by their rank. See core/table.
--
-- Scores stay strings: Lua would print them with 14 digits.
local TRIGGER, TAIL, IN_ORDER, STALE, NEVER = 28, 16, 8, 3000, 9e13
local shard, shards = ARGV[2], tonumber(ARGV[3])
local seq_epoch, seq_call = tonumber(ARGV[4]), tonumber(ARGV[5])
local stances, lists, columns, wants = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local info = redis.call('INFO', 'server')
local at = string.find(info, 'run_id:', 1, true)
local run = string.sub(info, at + 7, at + 22)    -- 64 bits of it
local k, a = 2, 9    -- the last key and argument read
local now
local stand = {}

local function parse_entry(text)
  local epoch, call, held, till = string.match(text, '(%d+) (%d+) (%d+) (%d+)')
  return tonumber(epoch), tonumber(call), tonumber(held), tonumber(till)
end

-- The state of a rate; where it is from another run, or there is none, it is at rest.
local function read_rate(s)
  local by, next_us = string.match(redis.call('GET', s.key) or '', '(%w+) (%S+)')
  s.next_us = by == run and tonumber(next_us) or 0
end

-- Checks come first: a call that is refused changes nothing.
for i = 1, stances do
  local every = tonumber(ARGV[a + 6 * i])
  local s = {key = KEYS[k + i], used = 0, entries = 0, soon = NEVER, turns = 0, line = '', held = 0, till = 0}
  if every > 0 then
    s.every = every
    read_rate(s)
  end
  local h = s.every and {} or redis.call('HMGET', s.key, 'all', 's' .. shard)
  s.fresh = true
  if h[1] then
    local by, used, entries, soon, turns, line = string.match(h[1], '(%w+) (%d+) (%d+) (%d+) (%d+) (.*)')
    s.fresh = by ~= run
    if not s.fresh then
      s.used, s.entries, s.soon = tonumber(used), tonumber(entries), tonumber(soon)
      s.turns, s.line, s.known = tonumber(turns), line, h[2]
    end
  end
  if s.known then
    local epoch, call
    epoch, call, s.held, s.till = parse_entry(s.known)
    if epoch > seq_epoch or (epoch == seq_epoch and call >= seq_call) then
      return {2}
    end
  end
  stand[i] = s
end
if redis.call('GET', KEYS[1]) ~= run .. ' ' .. ARGV[1] then
  return {1}
end

-- Counts again, without what has expired.
local function expire(s)
  s.used, s.soon = 0, NEVER
  local all = redis.call('HGETALL', s.key)
  for i = 1, #all, 2 do
    if string.match(all[i], '^s%d') then
      local epoch, call, held, till = parse_entry(all[i + 1])
      if held > 0 and till <= now then
        held = 0
        redis.call('HSET', s.key, all[i], string.format('%.0f %.0f 0 %.0f', epoch, call, till))
      elseif held > 0 then
        s.soon = math.min(s.soon, till)
      end
      if all[i] == 's' .. shard then
        s.held = held
      end
      s.used = s.used + held
    end
  end
end

-- Sets the shard's place in the line, and counts what those before it lack.
local function queue(s, wait)
  local line, mine = {}, nil
  if s.line ~= '' then
    for who, priority, turn, seen, short in string.gmatch(s.line, '(%d+) (%d+) (%d+) (%d+) (%d+);') do
      local w = {shard = who, priority = tonumber(priority), turn = tonumber(turn), seen = tonumber(seen), short = tonumber(short)}
      if now - w.seen < STALE and (who ~= shard or wait > 0) then
        line[#line + 1] = w
        if who == shard then
          mine = w
          w.priority, w.seen = wait, now
        end
      end
    end
  end
  if wait > 0 and not mine then
    s.turns = s.turns + 1
    mine = {shard = shard, priority = wait, turn = s.turns, seen = now, short = 1}
    line[#line + 1] = mine
  end
  s.ahead = 0
  for i = 1, #line do
    local w = line[i]
    if w ~= mine and (not mine or w.priority < mine.priority or (w.priority == mine.priority and w.turn < mine.turn)) then
      s.ahead = s.ahead + w.short
    end
  end
  s.line, s.mine = line, mine
end

local now_us
if stances > 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  now_us = time[1] * 1000000 + time[2]
end

local function stand_rate(s, burst)
  s.stored, s.burst, s.next_us = s.next_us, burst, math.min(math.max(s.next_us, now_us), now_us + burst * s.every)
  s.room = math.max(0, math.floor(burst - (s.next_us - now_us) / s.every))    -- at rest exactly a burst
  s.granted, s.short = 0, 0
end

local function stand_slots(s, a)
  if s.fresh then
    redis.call('DEL', s.key)
  elseif now >= s.soon then
    expire(s)
  end
  s.max = tonumber(ARGV[a + 1])
  local held, wait, expiry = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])
  s.ask = tonumber(ARGV[a + 3])
  s.used, s.held, s.till = s.used - s.held + held, held, math.max(s.till, now + expiry)
  if not s.known then
    s.entries = s.entries + 1
  end
  queue(s, wait)
  s.restoring = s.entries < shards
  s.room = s.restoring and 0 or math.max(0, s.max - s.used - s.ahead)
  s.granted, s.short, s.met = 0, 0, false
end

for i = 1, stances do
  if stand[i].every then
    stand_rate(stand[i], tonumber(ARGV[a + 1]))
  else
    stand_slots(stand[i], a)
  end
  a = a + 6
end
k = k + stances

local function store(key, n, ...)
  for first = 1, 2 * n, 1000 do
    redis.call('ZADD', key, 'LT', unpack(ARGV, a + first, a + math.min(first + 999, 2 * n)))
  end
  a = a + 2 * n
end
for i = 1, lists do
  redis.call('SADD', KEYS[2], ARGV[a + 1])
  a = a + 2
  store(KEYS[k + i], tonumber(ARGV[a]))
end
k = k + lists
for i = 1, columns do
  a = a + 1
  store(KEYS[k + i], tonumber(ARGV[a]))
end
k = k + columns

-- Takes what one want asks for.
local function want()
  local list, left, ahead, candidates = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local heads_key, column = KEYS[k + 1], k + 1
  a, k = a + 4, k + 1 + candidates
  local priority, name, hint, path = {}, {}, {}, {}
  for i = 1, candidates do
    priority[i], name[i], hint[i] = ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3])
    local n = tonumber(ARGV[a + 4])
    if n > 0 then
      local p = {}
      for j = 1, n do
        p[j] = tonumber(ARGV[a + 4 + j])
      end
      path[i] = p
    end
    a = a + 4 + n
  end

  -- By candidate:
  local page, place = {}, {}  -- chunks and scores read of it, and which of them is its head
  local more = {}             -- whether there may be chunks behind the page
  local head = {}             -- triggers of its first chunk, false = empty
  local score, age = {}, {}   -- that one's score as a string, and its age
  local step_of = {}          -- by how much the ranks of its triggers differ, if they have any
  local used = {}             -- chunks taken; they are removed at the end
  local rest = {}             -- what is left of the last of them
  local gone = {}             -- triggers taken
  local passed = {}           -- not looked at, since its path has no room, and one before was left for that
  local taken, seen = {}, 0

  local function step(i, at)
    local chunk = page[i][at] or false
    place[i], head[i], score[i], step_of[i] = at, chunk, page[i][at + 1], nil
    if chunk and #chunk % TRIGGER == TAIL then
      age[i], step_of[i] = struct.unpack('>I8I8', chunk, #chunk - TAIL + 1)
    else
      age[i] = score[i] and tonumber(score[i])
    end
  end

  -- Each call out of a script costs microseconds, so some chunks are read at once.
  local function look(i, n)
    page[i] = redis.call('ZRANGE', KEYS[column + i], used[i], used[i] + n - 1, 'WITHSCORES')
    more[i] = #page[i] == 2 * n
    step(i, 1)
  end

  -- Goes on to the next chunk when the head is taken; more than that one is of use if n > 1.
  local function advance(i, n)
    if more[i] and not page[i][place[i] + 2] then
      look(i, n)
    else
      step(i, place[i] + 2)
    end
  end

  -- How many triggers of its head come before the next chunk of a candidate.
  local function in_order(i)
    if (step_of[i] or 0) == 0 then
      return math.huge
    end
    if not page[i][place[i] + 2] then
      if not more[i] then
        return math.huge
      end
      look(i, 4)
      if not page[i][3] then
        return math.huge
      end
    end
    return math.max(IN_ORDER, math.floor((tonumber(page[i][place[i] + 3]) - tonumber(score[i])) / step_of[i]) + 1)
  end

  -- How many chunks to read at first: as many as may be needed, and not much more.
  local function first(i)
    local n, p = left, path[i]
    if p then
      for j = 1, #p do
        n = math.min(n, stand[p[j]].room)
      end
    end
    return n <= 64 and 1 or (candidates == 1 and 4 or 2)
  end

  -- The first stance of a candidate's path that has no room.
  local function full(i)
    local p = path[i]
    if p then
      for j = 1, #p do
        if stand[p[j]].room == 0 then
          return p[j]
        end
      end
    end
  end

  -- Whether something was left already because this stance has no room.
  local function left_for(by)
    if by then
      for i = 1, seen - 1 do
        if head[i] and full(i) == by then
          return true
        end
      end
    end
  end

  -- Removes what was taken of a candidate.
  local function remove(i)
    redis.call('ZREMRANGEBYRANK', KEYS[column + i], 0, used[i] - 1)
    if rest[i] then
      redis.call('ZADD', KEYS[column + i], score[i], rest[i])    -- of all, its age stays the least
    end
  end

  local function take(i)
    local chunk, p = head[i], path[i]
    local all = math.floor(#chunk / TRIGGER)
    local order = in_order(i)
    local n, over = math.min(left, all, order), 0
    if p then
      for j = 1, #p do
        n = math.min(n, stand[p[j]].room)
      end
      for j = 1, #p do
        local s = stand[p[j]]
        s.met, s.granted, s.room = true, s.granted + n, s.room - n
      end
      if all - n <= ahead and full(i) then
        over = all - n
      end
    end
    left, ahead = left - n, ahead - over
    gone[i] = gone[i] + n + over
    taken[#taken + 1] = i
    taken[#taken + 1] = score[i]
    used[i] = used[i] + 1
    if n + over < all then
      -- The want has all, or the path has no more room, or the next chunk comes first.
      taken[#taken + 1] = string.sub(chunk, 1, n * TRIGGER) .. string.sub(chunk, all * TRIGGER + 1)
      rest[i] = string.sub(chunk, n * TRIGGER + 1)
      if step_of[i] then -- others may come before the rest
        score[i] = string.format('%.0f', tonumber(score[i]) + n * step_of[i])
        remove(i)
        used[i], rest[i] = 0, nil
        look(i, (left > 0 and not full(i)) and 4 or 1)
      end
    else
      taken[#taken + 1] = chunk
      advance(i, over > 0 and 1 or 8)
    end
    taken[#taken + 1] = over
  end

  local from = 1
  while from <= candidates and left > 0 do
    local to = from
    while to < candidates and priority[to + 1] == priority[from] do
      to = to + 1
    end
    while left > 0 do
      local best
      for i = from, seen do
        if head[i] and (not best or age[i] < age[best]) and not full(i) then
          best = i
        end
      end
      if seen < to and (not best or hint[seen + 1] <= age[best]) then
        seen = seen + 1
        gone[seen], used[seen] = 0, 0
        if left_for(full(seen)) then
          passed[seen], head[seen], age[seen] = true, false, hint[seen]
        else
          look(seen, first(seen))
        end
      elseif best then
        take(best)
      else
        break
      end
    end
    from = to + 1
  end

  local heads, blocked, noted = {}, {}, {}
  local gained, lost = {}, {}    -- changes of the heads key
  for i = 1, seen do
    if used[i] > 0 then
      remove(i)
    end
    if head[i] or passed[i] then
      local at = string.format('%.0f', age[i])
      heads[#heads + 1] = at
      if age[i] ~= hint[i] then
        gained[#gained + 1] = at
        gained[#gained + 1] = name[i]
      end
      if path[i] then
        for j = 1, #path[i] do
          stand[path[i][j]].met = true
        end
        local by = full(i)
        if by and not noted[by] then
          noted[by] = true
          local s = stand[by]
          s.short = s.short + math.max(left, 1)
          blocked[#blocked + 1] = by
          blocked[#blocked + 1] = s.every and 4 or s.restoring and 3 or (s.used + s.granted >= s.max and 1 or 2)
        end
      end
    else
      heads[#heads + 1] = ''
      lost[#lost + 1] = name[i]
    end
    heads[#heads + 1] = gone[i]
  end
  if #gained > 0 then
    redis.call('ZADD', heads_key, unpack(gained))
  end
  if #lost > 0 then
    redis.call('ZREM', heads_key, unpack(lost))
    if redis.call('EXISTS', heads_key) == 0 then
      redis.call('SREM', KEYS[2], list)
    end
  end
  return {taken, heads, blocked}
end

local out = {0, {}}
for i = 1, wants do
  out[2 + i] = want()
end

-- Writes how the limits stand now.
local limits = out[2]

local function finish_rate(s)
  s.next_us = s.next_us + s.granted * s.every
  if s.granted > 0 or s.next_us < s.stored then
    redis.call('SET', s.key, run .. ' ' .. string.format('%.17g', s.next_us), 'PX', math.ceil((s.next_us - now_us) / 1000) + 1000)
  end
  local rest = math.max(0, math.floor(s.burst - (s.next_us - now_us) / s.every))
  limits[#limits + 1] = 0
  limits[#limits + 1] = rest > 0 and 0 or math.max(0, math.ceil(s.next_us - now_us + s.every - s.burst * s.every))
  limits[#limits + 1] = 0
  limits[#limits + 1] = 0
end

local function finish_slots(s)
  local mine = s.mine
  if mine and s.short > 0 then
    mine.short = s.short
    if s.granted > 0 then
      s.turns = s.turns + 1
      mine.turn = s.turns
    end
  end
  local line, others = {}, false
  for j = 1, #s.line do
    local w = s.line[j]
    if w ~= mine or s.short > 0 or not s.met then
      line[#line + 1] = w.shard .. ' ' .. w.priority .. ' ' .. w.turn .. ' ' .. w.seen .. ' ' .. w.short .. ';'
      others = others or w ~= mine
    end
  end
  local leased = 0
  if s.ask > 0 and not others and not s.restoring then
    leased = math.max(0, math.min(s.ask, math.floor((s.max - s.used - s.granted) / shards)))
  end
  s.used, s.held = s.used + s.granted + leased, s.held + s.granted + leased
  if s.held > 0 then
    s.soon = math.min(s.soon, s.till)
  end
  redis.call('HSET', s.key, 's' .. shard, ARGV[4] .. ' ' .. ARGV[5] .. ' ' .. s.held .. ' ' .. s.till, 'all',
    run .. ' ' .. s.used .. ' ' .. s.entries .. ' ' .. s.soon .. ' ' .. s.turns .. ' ' .. table.concat(line))
  limits[#limits + 1] = s.used
  limits[#limits + 1] = leased
  limits[#limits + 1] = s.restoring and 1 or 0
  limits[#limits + 1] = (others and not s.restoring) and 1 or 0
end

for i = 1, stances do
  if stand[i].every then
    finish_rate(stand[i])
  else
    finish_slots(stand[i])
  end
end
return out
