// Delivers cancels to a consumer: the ids of cancelled tasks, and announcements of new cancel rules.
import type { Log, TaskId } from '@bullpen/contract'
import type { QueueKeys } from '../keys.ts'
import { openSubscriber } from '../redis/subscriber.ts'

/** How many ids of cancelled tasks that are not running here are remembered. The oldest are dropped first. */
const REMEMBERED_IDS = 1_000

export interface CancelSubscriber {
  /**
   * Returns who cancelled this task if the cancel arrived before the task did, or '' if that is unknown. Each cancel is returned
   * only once.
   */
  cancelledBy(id: string): string | undefined
  close(): void
}

export interface CancelSubscriberOptions {
  readonly redisUrl: string
  readonly keys: QueueKeys
  /** Cancels a running task. Returns false if the task is not running here. `by` is who requested the cancel, '' if unknown. */
  readonly cancel: (id: TaskId, by: string) => boolean
  /** Called when there may be a new cancel rule. */
  readonly onRulesChanged: () => void
  readonly log: Log
}

export function openCancelSubscriber(options: CancelSubscriberOptions): CancelSubscriber {
  const { redisUrl, keys, cancel, onRulesChanged, log } = options
  const notRunningHere = new Map<string, string>()
  const remember = (id: string, by: string): void => {
    notRunningHere.set(id, by)
    const [oldest] = notRunningHere.keys()
    if (notRunningHere.size > REMEMBERED_IDS && oldest !== undefined) notRunningHere.delete(oldest)
  }
  const onCancel = (message: string): void => {
    const [id = '', ...words] = message.split(' ')
    const by = words.join(' ')
    if (!cancel(id as TaskId, by)) remember(id, by)
  }
  const subscriber = openSubscriber({
    redisUrl,
    channels: [keys.cancelChannel, keys.cancelRulesChannel],
    onMessage(channel, message) {
      if (channel === keys.cancelRulesChannel) onRulesChanged()
      else onCancel(message)
    },
    // If a cancel by id was missed, the maintenance repeats it.
    onSubscribed: onRulesChanged,
    log,
  })
  return {
    cancelledBy(id) {
      const by = notRunningHere.get(id)
      notRunningHere.delete(id)
      return by
    },
    close: subscriber.close,
  }
}
