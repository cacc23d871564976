// Reads what reverse proxies say about the request that a browser has sent to them.
//
// The API does not know which proxies to trust, so any caller can send these headers, and they must not grant anything to the caller
// itself. A page of another site can't make a browser send them, because a browser first asks with a preflight request whether it may,
// and the API never allows these headers.
import type { FastifyRequest } from 'fastify'

type WithHeaders = Pick<FastifyRequest, 'headers'>

/** Returns whether the browser's request came over https, either to this process or to the first proxy that says so. */
export function cameOverHttps(request: WithHeaders & Pick<FastifyRequest, 'protocol'>): boolean {
  return request.protocol === 'https' || forwardedProtocol(request) === 'https'
}

/** Returns `http` or `https`, or undefined if no proxy says how the browser's request came. */
export function forwardedProtocol({ headers }: WithHeaders): string | undefined {
  return (firstOf(headers['x-forwarded-proto']) ?? parameterOf(headers.forwarded, 'proto'))?.toLowerCase()
}

/** Returns the hosts under which the browser may have sent the request: to the first proxy, or to this process. */
export function possibleHosts({ headers }: WithHeaders): readonly string[] {
  const hosts = [headers.host, firstOf(headers['x-forwarded-host']), parameterOf(headers.forwarded, 'host')]
  return hosts.filter((host) => host !== undefined)
}

/** Each proxy appends its own value to a list, so the first one is the outermost proxy's. */
function firstOf(header: string | string[] | undefined): string | undefined {
  const [first = ''] = String(header ?? '').split(',', 1)
  return first.trim() || undefined
}

/** Returns a parameter of the first element of the header Forwarded (RFC 7239). */
function parameterOf(header: string | string[] | undefined, name: string): string | undefined {
  const parameters = (firstOf(header) ?? '').split(';').map((parameter) => parameter.trim().split('='))
  const [, value] = parameters.find(([key]) => key?.toLowerCase() === name) ?? []
  return value?.replaceAll('"', '') || undefined
}
