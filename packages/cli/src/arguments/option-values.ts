// Checks the values of options before anything is asked of the API.
import { BullpenError, type Duration, type Limit, milliseconds, type TaskStatus } from '@bullpen/contract'
import { limitMs, TASK_STATUSES } from '@bullpen/contract/internal'
import { meant } from './arguments.ts'
import { UsageError } from './usage-error.ts'

export function durationIn(option: string, text: string | undefined, longest?: Duration): Duration | undefined {
  if (text === undefined) return undefined
  const ms = told(() => milliseconds(text, option))
  if (longest !== undefined && ms > milliseconds(longest)) {
    throw new UsageError(`${option} is '${text}': the longest is ${longest}`)
  }
  return text as Duration
}

export function limitIn(option: string, text: string | undefined): Limit | undefined {
  told(() => limitMs(text, option))
  return text as Limit | undefined
}

export function metaIn(texts: readonly string[] = []): Readonly<Record<string, string>> | undefined {
  if (texts.length === 0) return undefined
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw new UsageError(`--meta is '${text}': it is KEY=VALUE`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}

export function statusIn(text: string | undefined): TaskStatus {
  const status = TASK_STATUSES.find((known) => known === text)
  if (status !== undefined) return status
  if (text === undefined || text === '') throw new UsageError('--status STATUS is missing')
  throw new UsageError(
    `there is no status '${text}'${meant(text, TASK_STATUSES)}; they are ${TASK_STATUSES.join(', ')}`,
  )
}

/** @throws UsageError with the nearest of those that there are. */
export function oneOf<T extends string>(option: string, text: string, known: readonly T[]): T {
  const found = known.find((each) => each === text)
  if (found !== undefined) return found
  throw new UsageError(`${option} is '${text}'${meant(text, known)}; it is one of ${known.join(', ')}`)
}

/** `100/1s`, or none. */
export function rateIn(text: string): 'none' | { readonly max: number; readonly per: Duration } {
  if (text === 'none') return text
  const [max, per] = text.split('/', 2)
  if (max === undefined || per === undefined) {
    throw new UsageError(`--rate is '${text}': it is starts in a time, such as 100/1s, or none`)
  }
  return { max: countIn('--rate', max), per: durationIn('--rate', per) as Duration }
}

export function countIn(option: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new UsageError(`${option} is '${text}': it is a whole number from 1 to 999999999`)
}

export function presentIn(option: string, text: string | undefined): string {
  if (text === undefined || text === '') throw new UsageError(`${option} is missing`)
  return text
}

function told<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof BullpenError ? new UsageError(error.message) : error
  }
}
