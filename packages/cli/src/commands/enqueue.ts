// bullpen enqueue: enqueues a task. With --wait, also waits for the task to end.
import type { UniqueOptions } from '@bullpen/contract'
import { MAX_ATTEMPTS, ON_CONFLICT } from '@bullpen/contract/internal'
import { readInput } from '../arguments/json-input.ts'
import {
  parseChoice,
  parseCount,
  parseDuration,
  parseLimit,
  parseMeta,
  parsePriority,
  parseTime,
  parseUntil,
  parseWhenFull,
} from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { acceptedLine } from '../output/task-text.ts'
import type { CommandContext } from './command-context.ts'
import { MAX_WAIT, waitForTask } from './wait-for-task.ts'

export async function enqueue({ positionals, values, stdin, connect, out }: CommandContext): Promise<ExitCode> {
  const [task = '', text] = positionals
  const wait = parseDuration('--wait', values.wait, MAX_WAIT)
  const maxAttempts = values['max-attempts']
  const options = withoutUndefined({
    meta: parseMeta(values.meta),
    tags: values.tag,
    delay: parseDuration('--delay', values.delay),
    runAt: parseTime('--run-at', values['run-at']),
    priority: parsePriority(values.priority),
    concurrencyKey: values['concurrency-key'],
    unique: uniqueIn(values),
    idempotencyKey: values['idempotency-key'],
    whenFull: parseWhenFull(values['when-full']),
    retry:
      maxAttempts === undefined ? undefined : { maxAttempts: parseCount('--max-attempts', maxAttempts, MAX_ATTEMPTS) },
    timeout: parseLimit('--timeout', values.timeout),
    heartbeatTimeout: parseLimit('--heartbeat-timeout', values['heartbeat-timeout']),
    queueTimeout: parseLimit('--queue-timeout', values['queue-timeout']),
    totalTimeout: parseLimit('--total-timeout', values['total-timeout']),
  })
  const client = connect()
  const input = await readInput(text, stdin)
  const { whenFull } = options
  // The client returns a dropped task only if the call itself specifies `drop`. Otherwise, it throws an error.
  const accepted = await (whenFull === 'drop'
    ? client.enqueueNamed(task, input, { ...options, whenFull })
    : client.enqueueNamed(task, input, options))
  if (accepted.action === 'dropped') {
    await out.answer(accepted, () => ['dropped: the queue is full'])
    return EXIT.incomplete
  }
  // The id is printed before the wait, so that the user has it even if the wait is interrupted.
  await out.answer(accepted, (layout) => [acceptedLine(accepted, layout)])
  return wait === undefined ? EXIT.success : await waitForTask(client, accepted.id, wait, out)
}

/** Refuses the options of a unique key if there is no key, because they would have no effect. */
function uniqueIn(values: CommandContext['values']): UniqueOptions | undefined {
  const { 'unique-key': key, 'unique-until': until, 'on-conflict': onConflict } = values
  if (key === undefined) {
    const extra = until !== undefined ? '--unique-until' : onConflict !== undefined ? '--on-conflict' : undefined
    if (extra !== undefined) throw new UsageError(`${extra} requires --unique-key`)
    return undefined
  }
  return {
    key,
    ...(until !== undefined && { until: parseUntil('--unique-until', until) }),
    ...(onConflict !== undefined && { onConflict: parseChoice('--on-conflict', onConflict, ON_CONFLICT) }),
  }
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(options: T): Defined<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<T>
}
