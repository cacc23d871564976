// Adds the items that an attempt of a source has emitted to its run.
import type { SourcePosition } from '@bullpen/engine/internal'
import { decodeRunChange, RUN_KEYS, RUN_STEPS, type RunChange } from '../includes/run-steps.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: those of a run ({@link RUN_KEYS}).
 * - ARGV: the run's id, the prefix of the channels, the run's incarnation, the number of the source's segment, the attempt's fencing
 *   token, the position of the first item, how many items the values contain, the digest and the cursor after the last item, '1' if it is
 *   the source's last; then the values.
 *
 * Values whose positions were emitted before are ignored, so that the script can be sent again. `stopped` means that the source is not
 * needed any more, and `fenced` that another attempt has replaced this one.
 */
export const emitItemsScript = defineScript({
  name: 'emit-items',
  kind: 'adds',
  keys: RUN_KEYS,
  args: ['id', 'channels', 'incarnation', 'segment', 'token', 'from', 'count', 'digest', 'cursor', 'isLast'],
  lua: `${RUN_STEPS}
local FIRST = 11
if run.state ~= 'running' or run.incarnation ~= incarnation then return { false, {}, 'stopped', {} } end
if run.source ~= 'active' or run.segment ~= segment or tonumber(token) < number('fencingToken')
  or tonumber(from) > number('emitted') then
  return { false, {}, 'fenced', {} }
end
set('fencingToken', token)
set('isWaiting', '')
-- Only the source's last batch can be shorter.
local fresh = FIRST + math.ceil((number('emitted') - from) / tonumber(run.batch1 or 1))
for i = fresh, #ARGV do push_item(ARGV[i]) end
if fresh <= #ARGV then
  set('emitted', from + count)
  set('digest', digest)
  set('cursor', cursor)
end
if isLast == '1' and from + count == number('emitted') then set('isExhausted', '1') end
if run.isExhausted ~= '1' and free() <= 0 then set('isWaiting', '1') end
local answer = reply(millis())
answer[3] = { number('emitted'), number('batch1'), free(), run.digest or '', run.cursor or '' }
return answer
`,
  answer: (reply): RunChange<SourcePosition | 'stopped' | 'fenced'> =>
    decodeRunChange(reply, (more) => {
      if (typeof more === 'string') return more as 'stopped' | 'fenced'
      const [emitted, batch, free, digest, cursor] = more as [number, number, number, string, string]
      return { emitted, batch, free, digest, cursor }
    }),
})
