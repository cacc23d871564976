// The slot's machine: one slot of a pool, from its first task to the end of its pool.
import type { SlotState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

const TERMINATING = [
  'TERMINATING_STOP_SIGNAL',
  'TERMINATING_PARENT_CTX_CLOSED',
  'TERMINATING_TASK_CH_CLOSED',
] as const satisfies readonly SlotState[]

/** The pool moves it in and out of WORKING; a stop, a drain or a closed parent tells it to end, once its task has. */
export const SLOT_TRANSITIONS = {
  NEW: ['IDLE', ...TERMINATING],
  IDLE: ['WORKING', 'RECOVER_ERR', ...TERMINATING],
  WORKING: ['IDLE', 'RECOVER_ERR', ...TERMINATING],
  // A drain that was soft may turn hard; nothing turns softer.
  TERMINATING_STOP_SIGNAL: ['TERMINATING_PARENT_CTX_CLOSED', 'TERMINATED'],
  TERMINATING_TASK_CH_CLOSED: ['TERMINATING_STOP_SIGNAL', 'TERMINATING_PARENT_CTX_CLOSED', 'TERMINATED'],
  TERMINATING_PARENT_CTX_CLOSED: ['TERMINATED'],
  TERMINATED: [],
  RECOVER_ERR: ['IDLE', ...TERMINATING],
} as const satisfies Transitions<SlotState>
