// Reads and writes the quarantine of a job that has lost its process (../../store/lua/includes/end/losses.lua).
import type { TaskQuarantine } from '@bullpen/engine/internal'
import type { Job } from 'bullmq'
import type { QueueKeys } from '../../keys.ts'
import { type Commander, runScript } from '../../scripts/script.ts'
import { startAloneScript } from '../../store/scripts.ts'

/**
 * Returns whether the job may be quarantined. BullMQ counts each lost process and never resets the count, so a job whose count is 0
 * needs no round trip.
 */
export function mayBeQuarantined({ stalledCounter }: Job): boolean {
  return stalledCounter > 0
}

/**
 * Returns the job's quarantine, or undefined if the job has ended an attempt by itself since it last lost its process. Takes one
 * round trip. If Redis does not respond, the job counts as quarantined after one death, which does no harm to any other task.
 */
export async function readQuarantine(
  { id = '', attemptsStarted }: Job,
  token: string,
  redis: Commander,
  keys: QueueKeys,
): Promise<TaskQuarantine | undefined> {
  const deaths = await redis.hget(keys.job(id), 'deaths').then(Number, () => 1)
  if (deaths === 0) return undefined
  const names = { job: keys.job(id) }
  return {
    deaths,
    startAlone: () =>
      runScript(redis, startAloneScript, names, { token, fencingToken: attemptsStarted }).then(
        (isStored) => isStored === 1,
        () => false,
      ),
  }
}
