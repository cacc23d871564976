// Runs the demo, which finds the files below a directory, hashes each of them as a task, and prints the list that md5sum would
// print.
import { randomUUID } from 'node:crypto'
import type { Writable } from 'node:stream'
import { createClient, http } from '@bullpen/client'
import { type FileDigest, md5Lines } from '@bullpen/tasks/files'
import { type DemoArguments, readArguments, USAGE, UsageError } from './arguments.ts'
import { DemoError } from './demo-error.ts'
import { digestAll } from './digest-all.ts'
import { KILL_AFTER, killOne } from './kill.ts'
import { writeLines } from './list-output.ts'
import { type Screen, showProgress } from './progress.ts'
import { finalReport, type Kill } from './report.ts'
import { Tally } from './tally.ts'
import { findFiles } from './tree.ts'

interface ProcessIO {
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Only the list is written to this stream. */
  readonly stdout: Writable
  readonly stderr: Screen
}

/** Returns exit code 0 if the list is complete, 1 if an error ended the demo early, and 2 if the arguments are invalid. */
export async function demo({ argv, env, stdout, stderr }: ProcessIO): Promise<0 | 1 | 2> {
  try {
    await run(readArguments(argv, env), { env, stdout, stderr })
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      stderr.write(`${error.message}\n\n${USAGE}`)
      return 2
    }
    const isExpected = error instanceof DemoError
    stderr.write(`${isExpected ? error.message : error instanceof Error ? error.stack : String(error)}\n`)
    return 1
  }
}

async function run(args: DemoArguments, { env, stdout, stderr }: Omit<ProcessIO, 'argv'>): Promise<void> {
  const startedAt = performance.now()
  // The correlation id connects the tasks of this run in the workers' logs.
  const client = createClient({ transport: http(args.api, args.key, { correlationId: `demo-${randomUUID()}` }) })
  const { files, error } = await findFiles(args.directory, args.exclude)
  const tally = new Tally(files.length)
  const digests: FileDigest[] = []
  const counts = () => ({ ...tally, seconds: (performance.now() - startedAt) / 1_000 })
  const progress = showProgress(stderr, env, counts)
  const ended = new AbortController()
  const killWorker = async () => {
    const { victims } = args
    const pid = await killOne({ client, victims, workers: tally.workers, signal: ended.signal })
    progress.print(pid === undefined ? 'no worker to kill' : `killed worker ${pid} with SIGKILL`)
    return { pid }
  }
  let killing: Promise<Kill> | undefined
  try {
    await digestAll(client, files, args.inFlight, (digested) => {
      tally.add(digested)
      digests.push({ path: digested.path, md5: digested.md5 })
      if (args.victims.length > 0 && tally.files >= files.length * KILL_AFTER) killing ??= killWorker()
    })
  } finally {
    ended.abort()
    await killing
    progress.end()
  }
  if (error !== undefined)
    throw new DemoError(`cannot read the whole directory: ${error instanceof Error ? error.message : error}`)
  await writeLines(stdout, md5Lines(digests))
  const kill = args.victims.length === 0 ? undefined : ((await killing) ?? { pid: undefined })
  stderr.write(`${finalReport(counts(), kill).join('\n')}\n`)
}
