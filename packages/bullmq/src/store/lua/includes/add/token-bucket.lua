-- Token buckets. They make the same decisions as packages/engine/src/admission/token-bucket.ts.
--
-- tokens_in(stored, now, max, per)  how many tokens a stored bucket has at `now` (ms), including a fraction. A bucket that is not stored is
--                                   full: it has `max` tokens, as many as are added in `per` ms
-- whole_tokens(tokens)              how many of them can be taken, for a sum of fractions that may be slightly less than a whole token
-- stored_bucket(tokens, now)        the text to store
local function tokens_in(stored, now, max, per)
  local tokens, at = string.match(stored or '', '^(%S+) (%S+)$')
  if not tokens then
    return max
  end
  return math.min(max, tokens + math.max(0, now - at) * max / per)
end
local function whole_tokens(tokens)
  return math.floor(tokens + 1e-6)
end
local function stored_bucket(tokens, now)
  return string.format('%.9f %.3f', tokens, now)
end
