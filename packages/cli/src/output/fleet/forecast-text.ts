// Formats a drain's forecast as text.
import type { WorkerForecast } from '../../commands/fleet/drain-forecast.ts'
import { type Cell, type Layout, tableLines } from '../columns.ts'
import { count, formatLength, plain } from '../format.ts'

/** Returns a line for each worker, and one for the drain as a whole. */
export function forecastLines(forecasts: readonly WorkerForecast[], target: string, layout: Layout): readonly string[] {
  return [...tableLines(forecasts.map(row), { ...layout, indent: 0 }), conclusion(forecasts, target)]
}

function row(forecast: WorkerForecast): Cell[] {
  const { worker, running, slowestTaskMs, totalMs, graceMs } = forecast
  const { endInTime, maySignal, mayFail, waitedFor, openEnded } = forecast
  if (slowestTaskMs === undefined) return [plain(worker), 'no running tasks', '']
  const deadline = totalMs === undefined ? '' : ` within ${formatLength(totalMs)}`
  const fates = [
    endInTime === 0 ? '' : `${endInTime} will end${deadline}`,
    maySignal === 0 ? '' : `${maySignal} may be signalled, then returned to the queue after ${formatLength(graceMs)}`,
    mayFail === 0 ? '' : `${mayFail} may be signalled, then end as dead after ${formatLength(graceMs)}`,
    waitedFor === 0
      ? ''
      : `waits up to ${formatLength((totalMs ?? 0) + graceMs)} for ${count(waitedFor, 'short task')}`,
    openEnded === 0 ? '' : `${openEnded} without a run timeout`,
  ]
  return [
    plain(worker),
    `${count(running, 'running task')}, longest ${formatLength(slowestTaskMs)}`,
    fates.filter(Boolean).join('; '),
  ]
}

function conclusion(forecasts: readonly WorkerForecast[], target: string): string {
  const sum = (of: 'running' | 'maySignal' | 'mayFail' | 'waitedFor' | 'openEnded') =>
    forecasts.reduce((total, each) => total + each[of], 0)
  const [running, maySignal, mayFail, openEnded] = [sum('running'), sum('maySignal'), sum('mayFail'), sum('openEnded')]
  const subject = `drain of ${plain(target)}:`
  if (forecasts.length === 0) return `${subject} no live workers`
  if (running === 0) return `${subject} no running tasks`
  const fates = [
    maySignal === 0 ? '' : `${maySignal} of ${running} may be signalled and returned to the queue`,
    mayFail === 0 ? '' : `${mayFail} of ${running} may be signalled and end as dead`,
  ].filter(Boolean)
  if (fates.length > 0) return `${subject} ${fates.join(', ')}`
  if (openEnded > 0) {
    return `${subject} waits for ${count(running, 'running task')}, of which ${openEnded} ${openEnded === 1 ? 'has' : 'have'} no run timeout`
  }
  if (sum('waitedFor') > 0) {
    return `${subject} does not interrupt the ${count(running, 'running task')}, but waits for ${count(sum('waitedFor'), 'short task')}`
  }
  return `${subject} does not interrupt the ${count(running, 'running task')}`
}
