// Adds the input that a pipeline run keeps to the job of the task that refers to it.
import { keeperOf, runOfToken, runTaskName, withKeptInput } from '@bullpen/engine/internal'
import type { Job } from 'bullmq'
import { namespaceOf, runKeys } from '../../keys.ts'
import { runScriptOnClient } from '../../scripts/script.ts'
import { readKeptInputScript } from '../../store/scripts.ts'
import { clientOf } from './job-scripts.ts'

export function hasKeptInput({ data }: Job): boolean {
  return keeperOf(data) !== undefined
}

/**
 * Adds the input to the job's data in this process, over the connection that fetched the job. Takes one round trip. If the run does not
 * have the input any more, the data stays as it is, and the task cannot be decoded. Resolves with false if Redis could not be read.
 */
export async function addKeptInput(job: Job): Promise<boolean> {
  const place = keeperOf(job.data)
  if (place === undefined) return true
  const { id, incarnation } = runOfToken(place.id)
  const { meta, inputs } = runKeys(namespaceOf(job.queueQualifiedName), id)
  const task = runTaskName(place.stage, place.position)
  try {
    const client = await clientOf(job)
    const args = { incarnation, task }
    const value = client && (await runScriptOnClient(client, readKeptInputScript, { meta, inputs }, args))
    job.data = withKeptInput(job.data, value ?? undefined)
    return true
  } catch {
    return false
  }
}
