// Starts MD5All as a pipeline across the fleet, and explains how a run of it has failed.
import { type Client, RunEndedError, type RunHandle } from '@bullpen/client'
import type { OutputOf, RunView } from '@bullpen/contract'
import { type filesSortByPath, md5AllBounded, md5AllParallel, md5AllSerial } from '@bullpen/tasks'
import { joinPath } from '@bullpen/tasks/files'
import type { DemoArguments, Mode } from './arguments.ts'
import { DemoError } from './demo-error.ts'
import type { Directory } from './directory.ts'

export type Md5All = OutputOf<typeof filesSortByPath>

const PIPELINES = { serial: md5AllSerial, parallel: md5AllParallel, bounded: md5AllBounded } as const satisfies Record<
  Mode,
  unknown
>

/** How long the run's record is kept. The list is in it, and is printed at once. */
const KEEP = '10m'

export function startMd5All(
  client: Client,
  { mode, exclude }: DemoArguments,
  { real }: Directory,
): Promise<RunHandle<Md5All>> {
  const input = { directory: real, exclude: [...exclude] }
  return client.startPipeline(PIPELINES[mode], input, { keep: KEEP, by: 'demo' })
}

/**
 * Returns the error of a run that has failed. The first error of a file takes precedence, because the walk's error reveals less about
 * the cause.
 */
export async function failureOf(client: Client, run: RunView, { real, shown }: Directory): Promise<DemoError> {
  const { firstError, source, reduction } = run
  if (firstError !== undefined) {
    const { input, error } = await client.task(firstError.task)
    const { path } = input as { readonly path: string }
    const name = JSON.stringify(shown(path.slice(joinPath(real, '').length)))
    return new DemoError(`${name}: task ${firstError.task} is ${firstError.end}${because(error)}`)
  }
  if (source.state === 'failed') {
    return new DemoError(`cannot read the whole directory${because((await client.task(source.taskId)).error)}`)
  }
  if (reduction?.state === 'failed') {
    return new DemoError(`cannot sort the list${because((await client.task(reduction.taskId)).error)}`)
  }
  return new DemoError(new RunEndedError(run).message)
}

function because(error: { readonly code: string; readonly message: string } | undefined): string {
  return error === undefined ? '' : `: ${error.code}: ${error.message}`
}
