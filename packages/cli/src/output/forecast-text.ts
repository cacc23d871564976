// What a drain would meet, as people read it.

import type { ProcessForecast } from '../commands/drain-forecast.ts'
import { type Cell, lines } from './columns.ts'
import { lengthOf, plain } from './format.ts'
import type { Look } from './task-text.ts'

/** A line for each worker, and one that says what it comes to. */
export function forecastLines(forecasts: readonly ProcessForecast[], target: string, look: Look): readonly string[] {
  return [...lines(forecasts.map(rowOf), { ...look, indent: 0 }), verdict(forecasts, target)]
}

function rowOf(of: ProcessForecast): Cell[] {
  const { worker, running, slowestTaskMs, totalMs, graceMs, endInTime, maySignal, mayFail, waitedFor, openEnded } = of
  if (slowestTaskMs === undefined) return [plain(worker), 'nothing runs', '']
  const limit = totalMs === undefined ? '' : ` within ${lengthOf(totalMs)}`
  const fates = [
    endInTime === 0 ? '' : `${endInTime} end${limit}`,
    maySignal === 0 ? '' : `${maySignal} may be signalled, and handed back ${lengthOf(graceMs)} later`,
    mayFail === 0 ? '' : `${mayFail} may be signalled, and dead ${lengthOf(graceMs)} later`,
    waitedFor === 0 ? '' : `${waitedFor} short, waited for ${lengthOf((totalMs ?? 0) + graceMs)} at most`,
    openEnded === 0 ? '' : `${openEnded} without a run timeout`,
  ]
  return [
    plain(worker),
    `${running} ${running === 1 ? 'runs' : 'run'}, longest ${lengthOf(slowestTaskMs)}`,
    fates.filter(Boolean).join(', '),
  ]
}

function verdict(forecasts: readonly ProcessForecast[], target: string): string {
  const sum = (of: 'running' | 'maySignal' | 'mayFail' | 'waitedFor' | 'openEnded') =>
    forecasts.reduce((total, each) => total + each[of], 0)
  const [running, maySignal, mayFail, openEnded] = [sum('running'), sum('maySignal'), sum('mayFail'), sum('openEnded')]
  const what = `drain of ${plain(target)}:`
  if (forecasts.length === 0) return `${what} no live worker works it`
  if (running === 0) return `${what} nothing runs`
  const fates = [
    maySignal === 0 ? '' : `${maySignal} of ${running} may be signalled and handed back`,
    mayFail === 0 ? '' : `${mayFail} of ${running} may be signalled and dead`,
  ].filter(Boolean)
  if (fates.length > 0) return `${what} ${fates.join(', ')}`
  if (openEnded > 0) return `${what} it waits for all ${running}, ${openEnded} of them without a run timeout`
  if (sum('waitedFor') > 0)
    return `${what} it signals none of ${running}; ${sum('waitedFor')} are short, and waited for`
  return `${what} all ${running} that run end by themselves`
}
