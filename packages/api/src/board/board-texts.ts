// Replaces those of Bull Board's English texts that would mislead on this board, because "failed" jobs are dead tasks here.

type Texts = { readonly [key: string]: string | Texts }

/** The texts that differ. The other languages of Bull Board have no texts for these keys of their own, and show the English ones. */
const TEXTS: Texts = {
  DASHBOARD: { EMPTY_STATE_FILTERED: 'No queue has such tasks.', SORTING: { FAILED: 'Dead Tasks' } },
  JOB: {
    FAILED_AT: 'Ended at',
    ACTIONS: {
      CLEAN: 'Delete',
      CONFIRM: {
        RETRY: 'Do you want to retry this task?',
        CLEAN: 'Do you want to delete this task? Only dead tasks can be deleted.',
      },
    },
  },
  QUEUE: {
    EMPTY_STATE: 'The queue has no such tasks.',
    ACTIONS: {
      RETRY_ALL_FAILED: 'Retry all {{count}} dead tasks',
      RETRY_FAILED_IN_ALL_QUEUES: 'Retry {{count}} dead tasks in all queues',
      RETRY_FAILED_IN_GROUP: 'Retry {{count}} dead tasks in group',
      CLEAN_ALL: 'Delete all',
      CONFIRM: {
        RETRY_ALL: 'Do you want to retry all of these dead tasks? Cancelled and expired tasks are not retried.',
        RETRY_FAILED_QUEUES:
          'Do you want to retry {{jobs}} dead tasks in {{count}} queues? Cancelled and expired tasks are not retried.',
        CLEAN_ALL: 'Do you want to delete all of these tasks? Only dead tasks can be deleted.',
      },
      TOAST: {
        RETRY_PENDING: 'Requesting the retry of all dead tasks...',
        RETRY_DONE: 'The retry was requested. The dead tasks are now being returned to their queue.',
        RETRY_QUEUES_PENDING: 'Requesting the retry of {{jobs}} dead tasks in {{count}} queues...',
        RETRY_QUEUES_DONE:
          'The retry of {{jobs}} dead tasks was requested. They are now being returned to their queues.',
      },
    },
    STATUS: {
      FAILED: 'Dead',
      SCHEDULED: 'Scheduled',
      RETRYING: 'Retrying',
      CANCELLED: 'Cancelled',
      EXPIRED: 'Expired',
    },
  },
}

/** Returns Bull Board's English texts with those of this board. */
export function boardTexts(texts: unknown): unknown {
  return merged(texts, TEXTS)
}

function merged(texts: unknown, changes: Texts): unknown {
  const given = typeof texts === 'object' && texts !== null ? (texts as Readonly<Record<string, unknown>>) : {}
  const changed = Object.entries(changes).map(([key, value]) => [
    key,
    typeof value === 'string' ? value : merged(given[key], value),
  ])
  return { ...given, ...Object.fromEntries(changed) }
}
