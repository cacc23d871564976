// Defines the state machine of a slot, which runs one attempt at a time.
import type { SlotState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

const TERMINATING = [
  'TERMINATING_STOP_SIGNAL',
  'TERMINATING_PARENT_CTX_CLOSED',
  'TERMINATING_TASK_CH_CLOSED',
] as const satisfies readonly SlotState[]

/**
 * A slot is NEW until the consumer starts fetching. Then it is WORKING while it has a task, and IDLE otherwise. An idle slot is
 * in RECOVER_ERR after fetching has failed, until it works again. In the TERMINATING states, the slot does not take any more
 * tasks, and it becomes TERMINATED when its current task has ended.
 */
export const SLOT_TRANSITIONS = {
  NEW: ['IDLE', ...TERMINATING],
  IDLE: ['WORKING', 'RECOVER_ERR', ...TERMINATING],
  WORKING: ['IDLE', ...TERMINATING],
  // A drain can only become harder.
  TERMINATING_TASK_CH_CLOSED: ['TERMINATING_STOP_SIGNAL', 'TERMINATING_PARENT_CTX_CLOSED', 'TERMINATED'],
  TERMINATING_STOP_SIGNAL: ['TERMINATING_PARENT_CTX_CLOSED', 'TERMINATED'],
  TERMINATING_PARENT_CTX_CLOSED: ['TERMINATED'],
  TERMINATED: [],
  RECOVER_ERR: ['IDLE', ...TERMINATING],
} as const satisfies Transitions<SlotState>
