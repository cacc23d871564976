// Runs the demo, which hashes every file below a directory with a pipeline across the fleet, and prints the list that md5sum would
// print.
import { randomUUID } from 'node:crypto'
import type { Writable } from 'node:stream'
import { type Client, createClient, http, ProblemError, type RunHandle } from '@bullpen/client'
import type { RunView } from '@bullpen/contract'
import { md5Lines } from '@bullpen/tasks/files'
import { type DemoArguments, readArguments, USAGE, UsageError } from './arguments.ts'
import { DemoError } from './demo-error.ts'
import { openDirectory } from './directory.ts'
import { followRun } from './follow-run.ts'
import { plural } from './format.ts'
import { killOne } from './kill.ts'
import { writeLines } from './list-output.ts'
import { failureOf, type Md5All, startMd5All } from './md5-all.ts'
import { type Progress, type Screen, showProgress } from './progress.ts'
import { finalReport, type Kill, progressLine } from './report.ts'

interface ProcessIO {
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Only the list is written to this stream. */
  readonly stdout: Writable
  readonly stderr: Screen
  /** Aborts when the user presses Ctrl-C. The run is then cancelled. */
  readonly signal: AbortSignal
}

/** 128 + 2, the number of SIGINT, as shells report it. */
const INTERRUPTED = 130

type ExitCode = 0 | 1 | 2 | typeof INTERRUPTED

/**
 * Returns exit code 0 if the list is complete, 1 if an error ended the demo early, 2 if the arguments are invalid, and 130 if the user
 * has cancelled the run.
 */
export async function demo({ argv, env, ...io }: ProcessIO): Promise<ExitCode> {
  try {
    return await run(readArguments(argv, env), { env, ...io })
  } catch (error) {
    if (error instanceof UsageError) {
      io.stderr.write(`${error.message}\n\n${USAGE}`)
      return 2
    }
    const isExpected = error instanceof DemoError || error instanceof ProblemError
    io.stderr.write(`${isExpected ? error.message : error instanceof Error ? error.stack : String(error)}\n`)
    return 1
  }
}

async function run(
  args: DemoArguments,
  { env, stdout, stderr, signal }: Omit<ProcessIO, 'argv'>,
): Promise<0 | typeof INTERRUPTED> {
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1_000
  const directory = await openDirectory(args.directory)
  // The correlation id connects the tasks of this run in the workers' logs.
  const client = createClient({ transport: http(args.api, args.key, { correlationId: `demo-${randomUUID()}` }) })
  const handle = await startMd5All(client, args, directory)
  const followed = followRun(client, handle)
  const progress = showProgress(stderr, env, () => progressLine(followed.progress(), seconds()))
  progress.print(`started ${handle.id} with --mode ${args.mode}`)
  const killing = killWhileRunning(client, handle, args.victims, followed.ended, progress)
  let ended: RunView
  let kill: Kill
  try {
    const cancelling = cancelOnInterrupt(handle, signal, progress)
    ;[ended, kill] = await Promise.all([followed.ended, killing])
    await cancelling()
  } finally {
    progress.end()
  }
  if (ended.result === 'cancelled') {
    const { completed = 0 } = ended.stages[0] ?? {}
    stderr.write(
      `${handle.id} was cancelled after ${completed} of ${ended.source.emitted} files; none of its tasks is waiting or running\n`,
    )
    return INTERRUPTED
  }
  if (ended.result !== 'completed') throw await failureOf(client, ended, directory)
  // The API has stored what the pipeline's own reduction has returned.
  const output = ended.output as Md5All
  await writeLines(stdout, md5Lines(output.files.map(({ path, md5 }) => ({ path: directory.shown(path), md5 }))))
  stderr.write(`${finalReport(output, seconds(), kill).join('\n')}\n`)
  return 0
}

/** Cancels the run when the signal aborts. The returned function waits for the request, and throws if it has failed. */
function cancelOnInterrupt(handle: RunHandle, signal: AbortSignal, progress: Progress): () => Promise<unknown> {
  let request: Promise<unknown> = Promise.resolve()
  const cancel = () => {
    progress.print(`cancelling ${handle.id}`)
    request = handle.cancel({ by: 'demo' })
    request.catch(() => {})
  }
  if (signal.aborted) cancel()
  else signal.addEventListener('abort', cancel, { once: true })
  return () => {
    signal.removeEventListener('abort', cancel)
    return request
  }
}

async function killWhileRunning(
  client: Client,
  run: RunHandle,
  victims: readonly number[],
  ended: Promise<unknown>,
  progress: Progress,
): Promise<Kill> {
  if (victims.length === 0) return undefined
  const over = new AbortController()
  const onEnd = () => over.abort()
  ended.then(onEnd, onEnd)
  const killed = await killOne({ client, run, victims, signal: over.signal })
  // The report says why none was killed.
  if (killed !== undefined)
    progress.print(`killed worker ${killed.pid} with SIGKILL while it was reading ${plural(killed.tasks, 'file')}`)
  return { killed }
}
