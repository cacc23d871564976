// MD5All over the HTTP API: find the files, hash each as a task, print the list that md5sum would.
import { randomUUID } from 'node:crypto'
import type { Writable } from 'node:stream'
import { createClient } from '@bullpen/client'
import { type FileDigest, md5Lines } from '@bullpen/tasks/files'
import { type DemoArguments, readArguments, USAGE, UsageError } from './arguments.ts'
import { DemoError } from './demo-error.ts'
import { digestAll } from './digest-all.ts'
import { KILL_AFTER, killOne } from './kill.ts'
import { writeLines } from './list-output.ts'
import { type Screen, showProgress } from './progress.ts'
import { finalReport } from './report.ts'
import { Tally } from './tally.ts'
import { findFiles } from './tree.ts'

interface Surroundings {
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** The list, and nothing else. */
  readonly stdout: Writable
  readonly stderr: Screen
}

/** The exit code: 0 when the list is whole, 1 when something ended it before, 2 for wrong arguments. */
export async function demo({ argv, env, stdout, stderr }: Surroundings): Promise<0 | 1 | 2> {
  try {
    await run(readArguments(argv, env), { env, stdout, stderr })
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      stderr.write(`${error.message}\n\n${USAGE}`)
      return 2
    }
    const known = error instanceof DemoError
    stderr.write(`${known ? error.message : error instanceof Error ? error.stack : String(error)}\n`)
    return 1
  }
}

async function run(wanted: DemoArguments, { env, stdout, stderr }: Omit<Surroundings, 'argv'>): Promise<void> {
  const began = performance.now()
  // The id that ties all of a run's tasks together in the workers' logs.
  const client = createClient({ baseUrl: wanted.api, key: wanted.key, correlationId: `demo-${randomUUID()}` })
  const { files, error } = await findFiles(wanted.directory, wanted.exclude)
  const tally = new Tally(files.length)
  const digests: FileDigest[] = []
  const standing = () => ({ ...tally, total: tally.total, seconds: (performance.now() - began) / 1_000 })
  const progress = showProgress(stderr, env, standing)
  const over = new AbortController()
  const kill = async () => {
    const { victims } = wanted
    const pid = await killOne({ client, victims, processes: tally.processes, signal: over.signal })
    progress.say(pid === undefined ? 'no worker to kill' : `killed worker ${pid} with SIGKILL`)
    return pid
  }
  let killing: Promise<number | undefined> | undefined
  try {
    await digestAll(client, files, wanted.inFlight, (digested) => {
      tally.add(digested)
      digests.push({ path: digested.path, md5: digested.md5 })
      if (wanted.victims.length > 0 && tally.files >= files.length * KILL_AFTER) killing ??= kill()
    })
  } finally {
    over.abort()
    await killing
    progress.end()
  }
  if (error !== undefined) throw new DemoError(`the walk broke off: ${error instanceof Error ? error.message : error}`)
  await writeLines(stdout, md5Lines(digests))
  stderr.write(`${finalReport(standing(), wanted.victims.length > 0, await killing).join('\n')}\n`)
}
