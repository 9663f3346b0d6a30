-- Carries out one call of a shard about one domain: sets its entries in limits, stores
-- chunks, takes triggers. The rules are those of core/table; the conformance suite holds the
-- two together.
--
-- KEYS: epoch, tasklists, slots or rate per stance, heads and column per column to clear, heads per tasklist stored to,
--       a column per column stored to; then per want: heads, a column per candidate
-- ARGV: epoch, shard, shards, seq epoch, seq call, stances, columns to clear, tasklists, columns, wants,
--       per stance: max, held, ask, wait, expiry in ms, 0, 0; of a rate: burst, unused starts, 0, 0, 0, interval in µs, 0; of a limit per
--         group: 0, count, 0, 1 = complete, 0, 0, -1; of one of its groups the last is its stance (from 1), of one in shadow -2;
--       per column to clear: its tasklist, name;
--       per tasklist: its name, number of columns, per column: head, name;
--       per column: number of chunks, per chunk: place, packed triggers;
--       per want: tasklist, wanted, ahead, candidates, per candidate: priority, name,
--         hint (its head or an older age), most (0 = it has no turns by rank), length of its path, the path's stances (from 1)
-- Returns {1} where the epoch is lost, {2} where a later call was carried out, else
-- {0, limits, per want: {taken, heads, blocked}}:
--   limits:  used, leased, restoring, others, ... per stance; of a rate: 0, wait in µs, 0, 1 = stands in its line; of one in shadow
--            the third is how many of those taken it would have held up
--   taken:   candidate, place, packed triggers, how many of these are ahead, ...
--   heads:   ready at ('' = empty), gone, rank, ... of the first candidates, as many as were looked at
--   blocked: stance, why (1 full, 2 in line, 3 restoring, 4 rated), ...
--
-- A limit is a hash. s<shard>: "epoch call held until" of the shard's entry; all:
-- "run used entries soon turns line" of the whole. run: the id of the server's run that wrote
-- it, under another all is void; used: what the entries hold in sum; entries: how many there are;
-- soon: no entry that holds something expires before; turns and line: see core/table, the line as
-- "shard priority turn seen short;" for each that waits.
--
-- A limit per group is a hash. s<shard>: "epoch call epoch count", of the shard's last call, and of the count with which it became
-- complete (0 0 = it is not); all: "run birth complete" of the whole: when it was made, in Unix µs, and how many shards are complete.
--
-- The limit of one group is a string: "birth turns;entries;line". birth: that of its limit per group, under another all is void;
-- entries: "shard epoch count held until," of those that hold something, void where it is of an older count than the shard's; line as above.
--
-- A rate is a string: "run next", the theoretical arrival time of its next start in Unix µs; and " debt line" where there is a debt of more
-- than a burst or a shard waits: at which interval that is paid off, or 0; the line as "shard need until;" for each that waits.
--
-- A chunk is a member of its column: triggers, scored by their age; or, where groups share the column, triggers and a tail of
-- their age and step, scored by their rank. A tail of their cost follows where that is more than 1. See core/table.
--
-- Scores stay strings: Lua would print them with 14 digits.
local TRIGGER, RANK, COST, IN_ORDER, STALE, NEVER, COST_MAX = 28, 16, 4, 8, 3000, 9e13, 1000
local shard, shards = ARGV[2], tonumber(ARGV[3])
local seq_epoch, seq_call = tonumber(ARGV[4]), tonumber(ARGV[5])
local stances, clears, lists = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local columns, wants = tonumber(ARGV[9]), tonumber(ARGV[10])
local info = redis.call('INFO', 'server')
local at = string.find(info, 'run_id:', 1, true)
local run = string.sub(info, at + 7, at + 22)    -- 64 bits of it
local k, a = 2, 10    -- the last key and argument read
local now
local stand = {}

local function parse_entry(text)
  local epoch, call, held, till = string.match(text, '(%d+) (%d+) (%d+) (%d+)')
  return tonumber(epoch), tonumber(call), tonumber(held), tonumber(till)
end

-- The state of a rate; where it is from another run, or there is none, it is at rest.
local function read_rate(s)
  local by, next_us, more = string.match(redis.call('GET', s.key) or '', '(%w+) (%S+)(.*)')
  s.next_us, s.debt, s.line = 0, 0, ''
  if by == run then
    s.next_us = tonumber(next_us)
    if more ~= '' then
      local debt, line = string.match(more, ' (%S+) (.*)')
      s.debt, s.line = tonumber(debt), line
    end
  end
end

-- A limit as it is, or as new where there is none, or it is from another run.
local function read_slots(s)
  local h = redis.call('HMGET', s.key, 'all', 's' .. shard)
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
    return epoch, call
  end
end

-- A limit per group; counted are the counts of shards, as far as they were read.
local function read_per_group(s)
  local h = redis.call('HMGET', s.key, 'all', 's' .. shard)
  s.fresh, s.complete, s.counted, s.groups = true, 0, {}, true
  if h[1] then
    local by, birth, complete = string.match(h[1], '(%w+) (%d+) (%d+)')
    s.fresh = by ~= run
    if not s.fresh then
      s.birth, s.complete = birth, tonumber(complete)
      if h[2] then
        local epoch, call, by_epoch, count = parse_entry(h[2])
        s.counted[shard] = {by_epoch, count}
        return epoch, call
      end
    end
  end
end

-- Checks come first: a call that is refused changes nothing.
for i = 1, stances do
  local every, kind = tonumber(ARGV[a + 7 * i - 1]), tonumber(ARGV[a + 7 * i])
  local s = {key = KEYS[k + i], used = 0, entries = 0, soon = NEVER, turns = 0, line = '', held = 0, till = 0, shadow = kind == -2}
  local epoch, call
  if every > 0 then
    s.every = every
    read_rate(s)
  elseif kind == -1 then
    epoch, call = read_per_group(s)
  elseif kind > 0 then
    s.of = kind
  else
    epoch, call = read_slots(s)
  end
  if epoch and (epoch > seq_epoch or (epoch == seq_epoch and call >= seq_call)) then
    return {2}
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

local function stand_rate(s, burst, unused)
  local next_us, debt = math.max(s.next_us, now_us), burst
  if s.debt > 0 then    -- so many starts, at the rate as it is now
    s.changed = s.debt ~= s.every
    if s.changed then
      next_us = now_us + (next_us - now_us) * s.every / s.debt
    end
    debt = math.max(debt, COST_MAX)
  end
  s.stored, s.burst, s.next_us = s.next_us, burst, math.min(next_us, now_us + debt * s.every)
  if unused > 0 and not s.shadow then
    s.next_us, s.changed = math.max(now_us, s.next_us - unused * s.every), true
  end
  s.free = math.max(0, math.floor(burst - (s.next_us - now_us) / s.every))    -- at rest exactly a burst
  local line, before = {}, not s.shadow
  s.ahead, s.waited = 0, s.line ~= ''
  if s.waited then
    for who, need, till in string.gmatch(s.line, '(%d+) (%d+) (%d+);') do
      local w = {shard = who, need = tonumber(need), till = tonumber(till)}
      if w.till > now then
        line[#line + 1] = w
        before = before and who ~= shard
        s.ahead = s.ahead + (before and w.need or 0)
      end
    end
  end
  s.line = line
  s.left = math.max(0, s.free - s.ahead)    -- the starts that the shard may use still
  s.room = s.shadow and math.huge or s.left
  s.used, s.need, s.beyond, s.short = 0, 0, 0, 0
end

-- How many triggers of a cost a rate has starts for: one that costs more than the burst needs all of that; the rest is a debt.
local function fits_rate(s, cost)
  if s.left < math.min(cost, s.burst) then
    return 0
  end
  return math.max(1, math.floor(s.left / cost))
end

local function lack(s, cost)
  if s.need == 0 then
    s.need = math.min(cost, s.burst)
  end
end

-- Uses the starts of n triggers. A trigger that a rate in shadow would have held up uses up nothing of it.
local function start_rate(s, n, cost)
  if s.shadow then
    local fits = math.min(n, fits_rate(s, cost))
    s.beyond = s.beyond + n - fits
    n = fits
  end
  s.used = s.used + n * cost
  s.left = math.max(0, s.left - n * cost)
  s.room = s.shadow and math.huge or s.left
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
  s.room = s.shadow and math.huge or s.restoring and 0 or math.max(0, s.max - s.used - s.ahead)
  s.granted, s.short, s.met = 0, 0, false
end

local function stand_per_group(s, a)
  if s.fresh then
    redis.call('DEL', s.key)
    s.birth = string.format('%.0f', now_us)
  end
  s.count = tonumber(ARGV[a + 2])
  local before = s.counted[shard] or {0, 0}
  if tonumber(ARGV[a + 4]) == 1 then
    s.counted[shard] = {seq_epoch, s.count}
    if before[1] == 0 then
      s.complete = s.complete + 1
    end
  else
    s.counted[shard] = before
  end
  s.restoring = s.complete < shards
  s.room = s.restoring and 0 or math.huge
  s.granted, s.short, s.max = 0, 0, 0
  redis.call('HSET', s.key, 's' .. shard, ARGV[4] .. ' ' .. ARGV[5] .. ' ' .. s.counted[shard][1] .. ' ' .. s.counted[shard][2],
    'all', run .. ' ' .. s.birth .. ' ' .. s.complete)
end

-- Whether an entry in the limit of a group counts no more, since its shard has counted again.
local function is_void(of, who, epoch, count)
  local counted = of.counted[who]
  if not counted then
    local text = redis.call('HGET', of.key, 's' .. who)
    local by_epoch, by_count = 0, 0
    if text then
      local ignored
      ignored, ignored, by_epoch, by_count = parse_entry(text)
    end
    counted = {by_epoch, by_count}
    of.counted[who] = counted
  end
  return epoch < counted[1] or (epoch == counted[1] and count < counted[2])
end

local function stand_group(s, a)
  local of = stand[s.of]
  s.stored = redis.call('GET', s.key)
  s.others = {}    -- entries of other shards
  local birth, turns, all, line = string.match(s.stored or '', '(%d+) (%d+);([^;]*);(.*)')
  if birth == of.birth then
    s.turns, s.line = tonumber(turns), line
    for who, epoch, count, held, till in string.gmatch(all, '(%d+) (%d+) (%d+) (%d+) (%d+),') do
      till = tonumber(till)
      if till > now and not is_void(of, who, tonumber(epoch), tonumber(count)) then
        if who == shard then
          s.till = till
        else
          s.others[#s.others + 1] = who .. ' ' .. epoch .. ' ' .. count .. ' ' .. held .. ' ' .. till .. ','
          s.used, s.soon = s.used + tonumber(held), math.min(s.soon, till)
        end
      end
    end
  end
  s.max = tonumber(ARGV[a + 1])
  local held, wait, expiry = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])
  s.ask, s.held, s.till = 0, held, math.max(s.till, now + expiry)
  queue(s, wait)
  s.used = s.used + held
  s.room = math.max(0, s.max - s.used - s.ahead)
  s.granted, s.short, s.met = 0, 0, false
end

for i = 1, stances do
  local s = stand[i]
  if s.every then
    stand_rate(s, tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]))
  elseif s.groups then
    stand_per_group(s, a)
  elseif s.of then
    stand_group(s, a)
  else
    stand_slots(s, a)
  end
  a = a + 7
end
k = k + stances
