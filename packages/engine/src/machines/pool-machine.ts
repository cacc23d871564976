// Defines the state machine of a pool, which is one worker's slots on one queue.
import type { PoolState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

/**
 * `start` moves a NEW pool to BG_RUNNING, and `online` moves it to ONLINE_RUNNING. A pool leaves either state when it is
 * drained, when its parent is closed, or, in ONLINE_RUNNING, when its given set of tasks or its group has ended. From any
 * state, an error that does not belong to an attempt moves the pool to RECOVER_ERR, which is final. SHUTDOWN never overwrites
 * TERMINATE_TIMEOUT.
 */
export const POOL_TRANSITIONS = {
  NEW: ['BG_RUNNING', 'ONLINE_RUNNING', 'SHUTTING_DOWN', 'RECOVER_ERR'],
  BG_RUNNING: ['SHUTTING_DOWN', 'RECOVER_ERR'],
  ONLINE_RUNNING: ['ONLINE_DONE', 'SHUTTING_DOWN', 'RECOVER_ERR'],
  ONLINE_DONE: ['RECOVER_ERR'],
  SHUTTING_DOWN: ['SHUTDOWN', 'TERMINATE_TIMEOUT', 'INCOMPLETE_DONE', 'RECOVER_ERR'],
  INCOMPLETE_DONE: ['RECOVER_ERR'],
  SHUTDOWN: ['RECOVER_ERR'],
  TERMINATE_TIMEOUT: ['RECOVER_ERR'],
  RECOVER_ERR: [],
} as const satisfies Transitions<PoolState>
