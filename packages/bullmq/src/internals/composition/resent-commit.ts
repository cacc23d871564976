// Lua that detects a commit that was sent twice. If Redis runs a script but the reply is lost, the script is sent again, and BullMQ
// refuses it because the lock is gone. These lines run only after such a refusal. They check the data that the attempt has stored,
// which shows whether its first commit succeeded.
//
// If the task has been removed in the meantime, that data is also gone, and the commit counts as refused. If the task was deleted by the
// script that ended it, Redis remembers its end for a short time.
import { DECODE_JSON } from '../../store/scripts.ts'

/**
 * Runs `lines` if BullMQ's script has refused because the lock is gone (-2) or another attempt has it (-6). For any other reason,
 * the script may have stored the fields already.
 */
const ifRefused = (lines: string): string => `
if answer == -2 or answer == -6 then${DECODE_JSON}${lines}
end`

/**
 * Confirms the commit if the job has the newest of these stacks, whatever has happened to the job since. An attempt record is the
 * first line of its stack, and no two records are equal, because they contain the times, the worker and the fencing token.
 * `stacks` is JSON.
 */
const confirmIfStored = (job: string, stacks: string): string => `
  local stored = call('HGET', ${job}, 'stacktrace')
  local sent = ${stacks} and decode_json(${stacks}) or {}
  local own = sent[#sent]
  if stored and own and string.sub(own, 1, 1) == '{' then
    for _, each in ipairs(decode_json(stored)) do
      if each == own then return 0 end
    end
  end`

/** Sets `stacks` to the stacks among the packed fields that BullMQ's script stores. */
const unpackStacks = (packed: string): string => `
  local stacks
  local fields = ${packed} and ${packed} ~= '' and cmsgpack.unpack(${packed}) or {}
  for i = 1, #fields, 2 do
    if fields[i] == 'stacktrace' then stacks = fields[i + 1] end
  end`

/** Confirms a resent commit of a script that stores the stacks among the packed fields. */
export const confirmResentFields = (job: string, packed: string): string =>
  ifRefused(`${unpackStacks(packed)}${confirmIfStored(job, 'stacks')}`)

/** Confirms a resent commit of `moveJobFromActiveToWait`, which takes the stacks as an argument of Bullpen's own. */
export const confirmResentStacks = (job: string): string => ifRefused(confirmIfStored(job, "(stacks ~= '' and stacks)"))

/**
 * Confirms a resent commit of `moveToFinished`. There is no record of the last attempt of a completed job, and none for a job that
 * BullMQ failed without starting it again. In both cases, the first commit succeeded if the job is in the set to which the commit
 * moves it, and has not been fetched since. A job that was deleted when it ended is gone (-1). `attempt` is the fencing token, or '' if the
 * caller does not commit anything.
 */
export const CONFIRM_RESENT_END = `${ifRefused(`
  local function has_ended(set)
    return attempt ~= '' and call('ZSCORE', set, ARGV[1]) and call('HGET', KEYS[12], 'ats') == attempt
  end
  if ARGV[5] == 'completed' then
    if has_ended(KEYS[11]) then return 0 end
  else${unpackStacks('ARGV[9]')}${confirmIfStored('KEYS[12]', 'stacks')}
    local is_record = own and string.sub(own, 1, 1) == '{'
    if not is_record and has_ended(base .. 'dead') then return 0 end
  end`)}
if answer == -1 and attempt ~= '' and call('ZSCORE', base .. 'recently-removed', ARGV[1] .. ' e' .. attempt) then return 0 end`
