-- Goes on where call_take.lua ends: carries out the wants, and writes how the limits stand.
local out = {0, {}}
for i = 1, wants do
  out[2 + i] = want()
end

-- Writes how the limits stand now.
local limits = out[2]

-- Gives the shard its place in the line of a rate: who was served goes behind the others. Returns whether it has one.
local function queue_rate(s)
  local short, line, mine = s.short > 0 and not s.shadow, {}, nil
  for j = 1, #s.line do
    local w = s.line[j]
    if w.shard ~= shard then
      line[#line + 1] = w
    elseif short and s.used == 0 then
      mine = w
      line[#line + 1] = w
    end
  end
  if short and not mine and (s.need > 1 or #line > 0) then
    mine = {shard = shard}
    line[#line + 1] = mine
  end
  if mine then
    mine.need, mine.till = s.need, now + STALE
  end
  s.line = line
  return mine ~= nil
end

local function write_rate(s)
  local text, till = run .. ' ' .. string.format('%.17g', s.next_us), s.next_us / 1000
  local line = {}
  for j = 1, #s.line do
    local w = s.line[j]
    line[j] = w.shard .. ' ' .. w.need .. ' ' .. w.till .. ';'
    till = math.max(till, w.till)
  end
  if s.debt > 0 or #line > 0 then
    text = text .. ' ' .. string.format('%.17g', s.debt) .. ' ' .. table.concat(line)
  end
  redis.call('SET', s.key, text, 'PX', math.max(0, math.ceil(till - now_us / 1000)) + 1000)
end

local function finish_rate(s)
  s.next_us = s.next_us + s.used * s.every
  local changed = s.used > 0 or s.changed or s.next_us < s.stored
  if changed then
    s.debt = s.next_us - now_us > s.burst * s.every and s.every or 0
  end
  local waits = queue_rate(s)
  if waits or s.waited or changed then
    s.next_us = changed and s.next_us or s.stored
    write_rate(s)
    s.next_us = math.max(s.next_us, now_us)
  end
  local need = math.max(s.need, 1)
  local rest = math.max(0, math.floor(s.burst - (s.next_us - now_us) / s.every)) - s.ahead
  limits[#limits + 1] = 0
  limits[#limits + 1] = (s.shadow or rest >= need) and 0 or math.max(0, math.ceil(s.next_us - now_us + (s.ahead + need) * s.every - s.burst * s.every))
  limits[#limits + 1] = s.beyond
  limits[#limits + 1] = waits and 1 or 0
end

-- The limit of a group is there while somebody holds a slot of it, or waits.
local function write_group(s, line)
  local of = stand[s.of]
  if s.held > 0 then
    s.others[#s.others + 1] = shard .. ' ' .. ARGV[4] .. ' ' .. of.count .. ' ' .. s.held .. ' ' .. s.till .. ','
  end
  if #s.others + #line == 0 then
    if s.stored then
      redis.call('DEL', s.key)
    end
    return
  end
  local till = #line > 0 and now + STALE or 0
  for j = 1, #s.others do
    till = math.max(till, tonumber(string.match(s.others[j], '(%d+),$')))
  end
  redis.call('SET', s.key, of.birth .. ' ' .. s.turns .. ';' .. table.concat(s.others) .. ';' .. table.concat(line), 'PX', till - now)
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
  local leased, third = 0, s.restoring and 1 or 0
  if s.shadow then
    third = math.max(0, math.min(s.granted, s.used + s.granted - s.max))
  end
  if s.ask > 0 and not others and not s.restoring then
    leased = math.max(0, math.min(s.ask, math.floor((s.max - s.used - s.granted) / shards)))
  end
  s.used, s.held = s.used + s.granted + leased, s.held + s.granted + leased
  if s.held > 0 then
    s.soon = math.min(s.soon, s.till)
  end
  if s.of then
    write_group(s, line)
  else
    redis.call('HSET', s.key, 's' .. shard, ARGV[4] .. ' ' .. ARGV[5] .. ' ' .. s.held .. ' ' .. s.till, 'all',
      run .. ' ' .. s.used .. ' ' .. s.entries .. ' ' .. s.soon .. ' ' .. s.turns .. ' ' .. table.concat(line))
  end
  limits[#limits + 1] = s.used
  limits[#limits + 1] = leased
  limits[#limits + 1] = third
  limits[#limits + 1] = (others and not s.restoring) and 1 or 0
end

local function finish_per_group(s)
  limits[#limits + 1] = 0
  limits[#limits + 1] = 0
  limits[#limits + 1] = s.restoring and 1 or 0
  limits[#limits + 1] = 0
end

for i = 1, stances do
  local s = stand[i]
  if s.every then
    finish_rate(s)
  elseif s.groups then
    finish_per_group(s)
  else
    finish_slots(s)
  end
end
return out
