// Decides whether a run that exists is the one that a request starts, so that the request can be repeated.
import { BullpenError } from '@bullpen/contract'
import type { Envelope, StoredTemplate } from '@bullpen/contract/internal'
import type { NewRun, Run, StartedRun } from '../ports/broker/runs.ts'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import { decodeInput } from '../task/payload/value-text.ts'

/**
 * Returns the run for a request that has tried to start `wanted`. `source` is the stored template of the run's source.
 *
 * @throws BullpenError `run_id_taken` if an earlier request has started the run with another pipeline, input or time limit.
 */
export function startedRun(
  run: Run,
  source: StoredTemplate | undefined,
  wanted: NewRun,
  codec: PayloadCodec | undefined,
): StartedRun {
  const { settings } = run
  if (settings.incarnation === wanted.settings.incarnation) return { run, isNew: true }
  const { id, pipeline, totalMs, keepMs } = wanted.settings
  const stored = decodeInput(JSON.parse(source?.data ?? '{}') as Envelope, codec)
  const differing = [
    settings.pipeline !== pipeline && `pipeline (${settings.pipeline})`,
    canonical(stored) !== canonical(wanted.tasks[0]?.input) && 'input',
    settings.totalMs !== totalMs && 'totalTimeout',
    settings.keepMs !== keepMs && 'keep',
  ].filter((each) => each !== false)
  if (differing.length === 0) return { run, isNew: false }
  throw new BullpenError(
    'run_id_taken',
    `run ${id} already exists with a different ${differing.join(', ')}; send exactly the same request to get that run, or choose another id`,
  )
}

/** Returns the value as JSON whose objects have their keys in order. */
function canonical(value: unknown): string | undefined {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  )
}
