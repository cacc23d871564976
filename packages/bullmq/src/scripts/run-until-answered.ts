// Runs a script that stores its reply (../store/lua/includes/stored-reply.lua), and sends it again until Redis has replied. The caller
// therefore learns what the script did even if the connection was lost after Redis had run it.
import { setTimeout as sleep } from 'node:timers/promises'
import { isRefusedForNow } from '../redis/outages/error-replies.ts'
import { retryDelay } from '../redis/redis-client.ts'
import { type Commander, runScript, type Script } from './script.ts'

/** How long a reply to the leader is kept, in ms. The leader stops resending a script after this time. */
export const REPLY_KEPT_MS = 600_000

/**
 * Runs a script, sending the same `request` argument each time. Takes one round trip unless a reply is lost. Rejects if Redis
 * replies with an error, if the client is closed, or if Redis has not replied for {@link REPLY_KEPT_MS}. The delays between two
 * calls, of at most a second, do not keep the process alive.
 */
export async function runUntilAnswered<Key extends string, Arg extends string, Answer>(
  redis: Commander,
  script: Script<Key, Arg, Answer>,
  keys: Readonly<Record<Key, string>>,
  args: Readonly<Record<Arg, string | number>>,
): Promise<Answer> {
  const until = performance.now() + REPLY_KEPT_MS
  for (let failures = 0; ; failures++) {
    try {
      return await runScript(redis, script, keys, args)
    } catch (error) {
      if (isAnswer(error) || redis.status === 'end' || performance.now() >= until) throw error
    }
    await sleep(retryDelay(failures), undefined, { ref: false })
  }
}

/** Returns whether Redis has replied with this error. Otherwise, the script may have run. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' && !isRefusedForNow(error)
}
