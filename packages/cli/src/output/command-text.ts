// A command to the fleet as people read it: what it asks for, and what came of it.
import type { CommandOutcome, CommandView } from '@bullpen/contract'
import type { Style } from './colors.ts'
import { type Cell, lines } from './columns.ts'
import { plain } from './format.ts'
import type { Look } from './task-text.ts'

const STYLES: Readonly<Record<CommandOutcome | 'gone', Style>> = {
  done: 'green',
  partly: 'yellow',
  pending: 'yellow',
  refused: 'red',
  gone: 'yellow',
}

type Order = CommandView['spec']

/** 'drain cpu, soft_timeout 30s'. */
export function orderText(order: Order): string {
  const { action, mode, timeout, how, concurrency, rate } = order
  const details: Readonly<Record<Order['action'], string>> = {
    pause: '',
    resume: '',
    drain: [mode, timeout].filter(Boolean).join(' '),
    stop: how === 'hard' ? 'hard' : '',
    resize: `${concurrency} at once`,
    limit: [
      concurrency === undefined ? '' : `${concurrency} at once`,
      rate === undefined ? '' : rate === 'none' ? 'none in a time' : `${rate.max} in ${rate.per}`,
    ]
      .filter(Boolean)
      .join(', '),
  }
  return plain([`${action} ${targetText(order)}`, details[action]].filter(Boolean).join(', '))
}

export function targetText({
  action,
  queue,
  worker,
  slot,
}: Pick<Order, 'queue' | 'worker' | 'slot'> & { action?: string }): string {
  if (action === 'stop') return `${worker}/${queue}/${slot}`
  if (queue !== undefined && worker !== undefined) return `${queue} of ${worker}`
  return queue ?? worker ?? ''
}

/** The command, and each worker's answer. */
export function commandLines({ id, spec, outcome, answers }: CommandView, look: Look): readonly string[] {
  const rows = answers.map(({ worker, outcome: made, detail }): Cell[] => [
    plain(worker),
    [STYLES[made], made],
    plain(detail ?? ''),
  ])
  return [
    ...lines([[orderText(spec), [STYLES[outcome], outcome], plain(id)]], { ...look, indent: 0 }),
    ...lines(rows, { ...look, indent: 2 }),
  ]
}

/** Each command on a line of its own: when, outcome, what, by whom, id. */
export function auditLines(commands: readonly CommandView[], look: Look): readonly string[] {
  const rows = commands.map(({ at, outcome, spec, by, id }): Cell[] => [
    at.replace(/\.\d+Z$/, 'Z'),
    [STYLES[outcome], outcome],
    orderText(spec),
    plain(by),
    plain(id),
  ])
  return lines(rows, { ...look, indent: 0 })
}
