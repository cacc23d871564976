// The state machine of a slot: what runs one attempt at a time.
import type { SlotState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

const TERMINATING = [
  'TERMINATING_STOP_SIGNAL',
  'TERMINATING_PARENT_CTX_CLOSED',
  'TERMINATING_TASK_CH_CLOSED',
] as const satisfies readonly SlotState[]

/**
 * NEW: until the consumer fetches. IDLE and WORKING: without and with a task. RECOVER_ERR: an idle slot while fetching has
 * failed. TERMINATING: the slot takes no further task, and is TERMINATED when its present one has ended.
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
