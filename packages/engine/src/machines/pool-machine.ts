// The state machine of a pool: one worker's slots on one queue.
import type { PoolState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

/**
 * `start` moves a NEW pool to BG_RUNNING, `online` to ONLINE_RUNNING; a drain, a closed parent or the end of the given set
 * leaves these. RECOVER_ERR can follow every state and is never left: an error that belongs to no attempt has reached the pool.
 * TERMINATE_TIMEOUT is never overwritten by SHUTDOWN.
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
