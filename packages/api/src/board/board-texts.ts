// Replaces those of Bull Board's texts that would mislead on this board, whose tabs show other tasks than their names say (tabs.ts).

type Texts = { readonly [key: string]: string | Texts }

/** The texts that differ. They are English in every language, because Bull Board's translations of them would be wrong. */
const TEXTS: Texts = {
  DASHBOARD: {
    EMPTY_STATE_FILTERED: 'No queue has such tasks.',
    SORTING: { FAILED: 'Dead Tasks', DELAYED: 'Scheduled Tasks' },
  },
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
        RETRY_SKIPPED: 'Dead tasks that matched: {{count}}',
        RETRY_QUEUES_PENDING: 'Requesting the retry of {{jobs}} dead tasks in {{count}} queues...',
        RETRY_QUEUES_DONE:
          'The retry of {{jobs}} dead tasks was requested. They are now being returned to their queues.',
      },
    },
    STATUS: {
      FAILED: 'Dead',
      PRIORITIZED: 'Retrying',
      DELAYED: 'Scheduled',
      PAUSED: 'Cancelled',
      'WAITING-CHILDREN': 'Expired',
    },
  },
}

const PLURAL = /_(?:zero|one|two|few|many|other)$/

/** Returns Bull Board's texts in one language with those of this board. */
export function boardTexts(texts: unknown): unknown {
  return merged(texts, TEXTS)
}

function merged(texts: unknown, changes: Texts): unknown {
  const all = typeof texts === 'object' && texts !== null ? (texts as Readonly<Record<string, unknown>>) : {}
  // A plural form of a text that is replaced would take precedence over the replacement.
  const isReplaced = (key: string): boolean => typeof changes[key.replace(PLURAL, '')] === 'string'
  const given = Object.fromEntries(Object.entries(all).filter(([key]) => !isReplaced(key)))
  const changed = Object.entries(changes).map(([key, value]) => [
    key,
    typeof value === 'string' ? value : merged(given[key], value),
  ])
  return { ...given, ...Object.fromEntries(changed) }
}
