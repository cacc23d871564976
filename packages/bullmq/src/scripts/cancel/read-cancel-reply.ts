// Reads the stored reply to a request to cancel one task.
import type { CancelAnswer } from '@bullpen/contract/internal'
import { STORED_REPLY } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'
import type { CancelReply } from './cancel-task.ts'

/**
 * - KEYS: the reply to the request.
 * - ARGV: the id of the request.
 *
 * Returns the reply, or undefined if the script `cancel-task` has not stored one for this request.
 */
export const readCancelReply = defineScript({
  name: 'read-cancel-reply',
  kind: 'reads',
  keys: ['cancelReply'],
  args: ['request'],
  lua: `${STORED_REPLY}
return stored_reply(cancelReply, request) or false
`,
  answer(reply): CancelReply | undefined {
    if (reply === null) return undefined
    const [answer, task] = reply as [CancelAnswer, string]
    return { answer, task }
  },
})
