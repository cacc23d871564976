// Delivers receipts over HTTP to the configured endpoint.
import { BullpenError, type Duration, formatDuration, TaskError } from '@bullpen/contract'

export interface Receipt {
  readonly orderId: string
  readonly to: string
  readonly total: string
  readonly currency: string
}

export interface ReceiptGateway {
  /**
   * Sends one request and resolves to its 2xx status. `key` is sent as the Idempotency-Key header. The key is the same in every
   * attempt, so an endpoint that honours the header sends only one mail.
   *
   * @throws TaskError `delivery_failed` (retryable) if there is no response or the status is 5xx, 408, 425 or 429;
   * `delivery_refused` (permanent) for any other status; `no_endpoint` (permanent) if no endpoint is configured; or the signal's
   * reason if the signal aborts. If the response has a Retry-After header, `delivery_failed` has the same delay as `retryAfter`.
   */
  deliver(receipt: Receipt, key: string, signal: AbortSignal): Promise<number>
}

const SETTING = 'BULLPEN_WORKER_RECEIPT_ENDPOINT'
const DAY_MS = 86_400_000

/** Statuses below 500 that are transient (RFC 9110, 8470, 6585). */
const TRANSIENT: readonly number[] = [408, 425, 429]

/** @throws BullpenError `invalid_configuration` if the endpoint is not an http or https URL without credentials. */
export async function openReceiptGateway({
  endpoint,
}: {
  readonly endpoint: string | undefined
}): Promise<ReceiptGateway> {
  const url = endpoint === undefined ? undefined : endpointUrl(endpoint)
  return {
    async deliver(receipt, key, signal) {
      if (url === undefined) {
        throw new TaskError('no_endpoint', `receipts cannot be delivered because ${SETTING} is not set`, {
          retryable: false,
        })
      }
      const response = await post(url, receipt, key, signal)
      // The body is not needed, but an unread body would keep the connection busy.
      await response.body?.cancel()
      if (response.ok) return response.status
      const message = `${url.host} responded with ${response.status}`
      if (response.status >= 500 || TRANSIENT.includes(response.status)) {
        const after = retryAfter(response.headers.get('retry-after'), Date.now())
        throw new TaskError('delivery_failed', message, after === undefined ? {} : { retryAfter: after })
      }
      throw new TaskError('delivery_refused', message, { retryable: false })
    },
  }
}

function endpointUrl(endpoint: string): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new BullpenError(
      'invalid_configuration',
      `${SETTING} is invalid; expected an http or https URL without a user name or password`,
    )
  }
  return url
}

async function post(url: URL, receipt: Receipt, key: string, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(receipt),
      // A redirect would deliver the receipt to an address that was not configured.
      redirect: 'manual',
      signal,
    })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const detail = cause instanceof Error ? cause.message || cause.name : String(cause)
    throw new TaskError('delivery_failed', `no response from ${url.host}: ${detail}`, { cause: error })
  }
}

/**
 * Parses seconds or an HTTP date (RFC 9110, 10.2.3), up to a day. Returns undefined if the header is absent, in the past or
 * unreadable.
 */
export function retryAfter(header: string | null, now: number): Duration | undefined {
  if (header === null) return undefined
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now
  return ms > 0 ? formatDuration(Math.min(Math.ceil(ms), DAY_MS)) : undefined
}
