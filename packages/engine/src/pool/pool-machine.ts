// The pool's machine: one worker's slots on one queue, from start to shutdown.
import type { PoolState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

/** TERMINATE_TIMEOUT and RECOVER_ERR stay: a shutdown that went wrong is never overwritten by one that went well. */
export const POOL_TRANSITIONS = {
  NEW: ['BG_RUNNING', 'ONLINE_RUNNING', 'SHUTTING_DOWN', 'RECOVER_ERR'],
  BG_RUNNING: ['SHUTTING_DOWN', 'RECOVER_ERR'],
  ONLINE_RUNNING: ['ONLINE_DONE', 'SHUTTING_DOWN', 'RECOVER_ERR'],
  ONLINE_DONE: ['RECOVER_ERR'],
  INCOMPLETE_DONE: ['RECOVER_ERR'],
  SHUTTING_DOWN: ['SHUTDOWN', 'TERMINATE_TIMEOUT', 'INCOMPLETE_DONE', 'RECOVER_ERR'],
  SHUTDOWN: ['RECOVER_ERR'],
  TERMINATE_TIMEOUT: ['RECOVER_ERR'],
  RECOVER_ERR: [],
} as const satisfies Transitions<PoolState>
