// Checks a long task's timeouts against each other, because a timeout that can never expire is a mistake.

/** Timeouts in milliseconds. Undefined inherits a default, and `'none'` means no timeout. */
export interface TimeoutsMs {
  readonly timeoutMs?: number | 'none' | undefined
  readonly heartbeatMs?: number | 'none' | undefined
  readonly totalMs?: number | 'none' | undefined
  readonly queueMs?: number | 'none' | undefined
}

/** Returns a description of the first contradiction, or undefined if there is none. */
export function contradictionIn({ timeoutMs, heartbeatMs, totalMs, queueMs }: TimeoutsMs): string | undefined {
  if (isNumber(heartbeatMs) && isNumber(timeoutMs) && heartbeatMs >= timeoutMs) {
    return `heartbeatTimeout (${heartbeatMs} ms) is not shorter than timeout (${timeoutMs} ms) and would therefore never expire`
  }
  if (isNumber(timeoutMs) && isNumber(totalMs) && timeoutMs > totalMs) {
    return `timeout (${timeoutMs} ms) is longer than totalTimeout (${totalMs} ms) and would therefore never expire`
  }
  if (isNumber(heartbeatMs) && isNumber(totalMs) && heartbeatMs >= totalMs) {
    return `heartbeatTimeout (${heartbeatMs} ms) is not shorter than totalTimeout (${totalMs} ms) and would therefore never expire`
  }
  if (isNumber(queueMs) && isNumber(totalMs) && queueMs >= totalMs) {
    return `queueTimeout (${queueMs} ms) is not shorter than totalTimeout (${totalMs} ms) and would therefore never expire`
  }
  return undefined
}

function isNumber(limit: number | 'none' | undefined): limit is number {
  return typeof limit === 'number'
}
