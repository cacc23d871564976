// bullpen limit: limits a queue, a concurrency key, a task definition or an API key.
import { MAX_CONCURRENCY, MAX_ENQUEUE_RATE, MAX_RATE } from '@bullpen/contract/internal'
import {
  namedOnce,
  parseBytes,
  parseCount,
  parseLimit,
  parseRate,
  requireValue,
  withoutUndefined,
} from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { ExitCode } from '../../exit-codes.ts'
import type { CommandContext } from '../command-context.ts'
import { exitCodeOf, sendCommand } from './fleet-control.ts'

const QUEUE_LIMITS = [
  ...(['concurrency', 'rate', 'concurrency-per-key', 'rate-per-key', 'permits'] as const),
  ...(['max-tasks', 'max-bytes', 'max-age'] as const),
]
const API_KEY_LIMITS = ['enqueue-rate', 'max-unfinished-tasks'] as const

export async function limit(context: CommandContext): Promise<ExitCode> {
  const { values } = context
  if (values['api-key-name'] !== undefined) return limitApiKey(context, values['api-key-name'])
  const queue = requireValue('--queue QUEUE or --api-key-name NAME', values.queue)
  const foreign = API_KEY_LIMITS.find((limit) => values[limit] !== undefined)
  if (foreign !== undefined) throw new UsageError(`--${foreign} requires --api-key-name`)
  if (values['concurrency-key'] !== undefined) return limitConcurrencyKey(context, queue, values['concurrency-key'])
  if (values.task !== undefined) return limitDefinition(context, queue, values.task)
  const { concurrency, rate, 'max-tasks': maxTasks, 'max-bytes': maxBytes, 'max-age': maxAge, burst } = values
  const { 'concurrency-per-key': concurrencyPerKey, 'rate-per-key': ratePerKey } = values
  if (QUEUE_LIMITS.every((limit) => values[limit] === undefined)) {
    throw new UsageError(
      'specify a limit: --concurrency, --rate, --concurrency-per-key, --rate-per-key, --permits, --max-tasks, --max-bytes or --max-age',
    )
  }
  if (burst !== undefined && ratePerKey === undefined) throw new UsageError('--burst requires --rate-per-key')
  const order = withoutUndefined({
    action: 'limit',
    queue,
    concurrency: parseCountOrNone('--concurrency', concurrency, MAX_CONCURRENCY),
    rate: parseRate('--rate', rate, MAX_RATE),
    concurrencyPerKey: parseCountOrNone('--concurrency-per-key', concurrencyPerKey, MAX_CONCURRENCY),
    ratePerKey: parseStartRate('--rate-per-key', ratePerKey, burst),
    permits: values.permits && parsePermits(values.permits),
    maxTasks: parseCountOrNone('--max-tasks', maxTasks),
    maxBytes: parseBytes('--max-bytes', maxBytes),
    maxAge: parseLimit('--max-age', maxAge),
  })
  return exitCodeOf(await sendCommand(context, context.connect(), order))
}

async function limitConcurrencyKey(context: CommandContext, queue: string, concurrencyKey: string): Promise<ExitCode> {
  const { values } = context
  const { concurrency, rate, burst } = values
  const foreign = QUEUE_LIMITS.find(
    (limit) => limit !== 'concurrency' && limit !== 'rate' && values[limit] !== undefined,
  )
  if (foreign !== undefined) throw new UsageError(`--${foreign} is a limit of a queue; remove --concurrency-key`)
  if (concurrency === undefined && rate === undefined) {
    throw new UsageError('specify a limit of the concurrency key: --concurrency or --rate')
  }
  if (values.task !== undefined) throw new UsageError('specify either --task or --concurrency-key')
  if (burst !== undefined && rate === undefined) throw new UsageError('--burst requires --rate')
  const order = withoutUndefined({
    action: 'limit',
    queue,
    concurrencyKey,
    concurrency: parseConcurrencyOrStop(concurrency),
    rate: parseStartRate('--rate', rate, burst),
  })
  return exitCodeOf(await sendCommand(context, context.connect(), order))
}

async function limitDefinition(context: CommandContext, queue: string, task: string): Promise<ExitCode> {
  const { values } = context
  const foreign = [...QUEUE_LIMITS, 'burst' as const].find(
    (limit) => limit !== 'concurrency' && values[limit] !== undefined,
  )
  if (foreign !== undefined) throw new UsageError(`--${foreign} is not a limit of a task definition; remove --task`)
  const concurrency = parseConcurrencyOrStop(requireValue('--concurrency N', values.concurrency))
  const order = withoutUndefined({ action: 'limit', queue, task, concurrency })
  return exitCodeOf(await sendCommand(context, context.connect(), order))
}

/** Parses the concurrency of a key or a definition. With 0, it starts no task. */
function parseConcurrencyOrStop(text: string | undefined): number | 'none' | undefined {
  return text === '0' ? 0 : parseCountOrNone('--concurrency', text, MAX_CONCURRENCY)
}

/** Parses numbers of permits such as `db=5` or `db=none`. */
function parsePermits(texts: readonly string[]): Readonly<Record<string, number | 'none'>> {
  const permits = texts.map((text) => {
    const [, name, count = ''] = /^([^=]+)=(\d+|none)$/.exec(text) ?? []
    if (name === undefined) throw new UsageError(`--permits is '${text}'; expected NAME=N or NAME=none, such as db=5`)
    return [name, count === 'none' ? count : Number(count)] as const
  })
  return namedOnce('--permits', permits)
}

function parseCountOrNone(option: string, text: string | undefined, max?: number): number | 'none' | undefined {
  return text === 'none' ? text : parseCount(option, text, max)
}

/** Parses how many tasks of a concurrency key may start per period, and at once. */
function parseStartRate(option: string, text: string | undefined, burst: string | undefined) {
  const rate = parseRate(option, text, MAX_RATE)
  if (burst === undefined || rate === undefined) return rate
  if (rate === 'none') throw new UsageError(`--burst requires a rate; ${option} is none`)
  return { ...rate, burst: parseCount('--burst', burst, MAX_RATE) }
}

async function limitApiKey(context: CommandContext, apiKeyName: string): Promise<ExitCode> {
  const { values } = context
  const { queue, 'enqueue-rate': rate, 'max-unfinished-tasks': maxTasks } = values
  const foreign = QUEUE_LIMITS.find((limit) => values[limit] !== undefined)
  if (foreign !== undefined) throw new UsageError(`--${foreign} is a limit of a queue; remove --api-key-name`)
  const subject = (['concurrency-key', 'task'] as const).find((option) => values[option] !== undefined)
  if (subject !== undefined) throw new UsageError(`specify either --api-key-name or --${subject}`)
  if (rate === undefined && maxTasks === undefined) {
    throw new UsageError('specify a limit of the API key: --enqueue-rate or --max-unfinished-tasks')
  }
  if (maxTasks !== undefined) requireValue('--queue QUEUE', queue)
  const order = withoutUndefined({
    action: 'limit',
    queue,
    apiKeyName,
    enqueueRate: parseRate('--enqueue-rate', rate, MAX_ENQUEUE_RATE),
    maxUnfinishedTasks: parseCountOrNone('--max-unfinished-tasks', maxTasks),
  })
  return exitCodeOf(await sendCommand(context, context.connect(), order))
}
