// The rules between a long task's time limits.

/** Milliseconds; undefined is inherited or not there, `'none'` said not to be there. */
export interface TimeoutsMs {
  readonly timeoutMs?: number | 'none' | undefined
  readonly heartbeatMs?: number | 'none' | undefined
  readonly totalMs?: number | 'none' | undefined
  readonly queueMs?: number | 'none' | undefined
}

/** What contradicts: a limit that another one would always come before. Undefined when nothing does. */
export function contradictionIn({ timeoutMs, heartbeatMs, totalMs, queueMs }: TimeoutsMs): string | undefined {
  if (isNumber(heartbeatMs) && isNumber(timeoutMs) && heartbeatMs >= timeoutMs) {
    return `heartbeatTimeout (${heartbeatMs} ms) is not shorter than timeout (${timeoutMs} ms), which would always come first`
  }
  if (isNumber(timeoutMs) && isNumber(totalMs) && timeoutMs > totalMs) {
    return `timeout (${timeoutMs} ms) is longer than totalTimeout (${totalMs} ms), which would always come first`
  }
  if (isNumber(heartbeatMs) && isNumber(totalMs) && heartbeatMs >= totalMs) {
    return `heartbeatTimeout (${heartbeatMs} ms) is not shorter than totalTimeout (${totalMs} ms), which would always come first`
  }
  if (isNumber(queueMs) && isNumber(totalMs) && queueMs >= totalMs) {
    return `queueTimeout (${queueMs} ms) is not shorter than totalTimeout (${totalMs} ms), which would always come first`
  }
  return undefined
}

function isNumber(limit: number | 'none' | undefined): limit is number {
  return typeof limit === 'number'
}
