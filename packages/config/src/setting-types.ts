// Defines value types that several settings share. Each type defines which values it accepts and how an error describes them.
import { isIPv6 } from 'node:net'
import { type Duration, milliseconds } from '@bullpen/contract'
import { z } from 'zod'

/**
 * Accepts a whole number, given as a number or as digits. Rejects '0x10', ' ' and true, which JavaScript would also convert to
 * numbers.
 */
export function wholeNumber(least: number, most: number) {
  const digits = z
    .string()
    .regex(/^-?\d{1,15}$/)
    .transform(Number)
  const schema = z.union([z.number(), digits]).pipe(z.number().int().min(least).max(most))
  return { schema, expected: `a whole number from ${least} to ${most}` }
}

/** Like {@link wholeNumber}, but with a default. */
export function wholeNumberOr(fallback: number, least: number, most: number) {
  const { schema, expected } = wholeNumber(least, most)
  return { schema: schema.default(fallback), expected }
}

/** Accepts what a server can listen on. An IPv6 address may be in brackets, as in a URL. Defaults to this machine. */
export const listeningHost = {
  schema: z
    .string()
    .transform((text) => /^\[(.+)\]$/.exec(text)?.[1] ?? text)
    .refine((text) => /^[\w.-]+$/.test(text) || isIPv6(text))
    .default('127.0.0.1'),
  expected: 'a host name or an IP address, without a port',
}

/** Accepts true or false, with a default. */
export function trueOrFalse(fallback: boolean) {
  const word = z.enum(['true', 'false']).transform((text) => text === 'true')
  return { schema: z.union([z.boolean(), word]).default(fallback), expected: 'true or false' }
}

/** Accepts one of these words. */
export function oneOf<const W extends readonly string[]>(words: W) {
  return { schema: z.enum(words), expected: `one of ${words.join(', ')}` }
}

export const noLimit = z.literal('none')

/** Accepts a duration of at least `shortest`, with a default. */
export function durationOr(fallback: Duration, shortest: Duration = '1ms') {
  return { schema: durationFrom(shortest).default(fallback), expected: expectedDuration(shortest) }
}

/** Like {@link durationOr}, but also accepts `none`, which means no limit. */
export function durationOrNone(fallback: Duration | 'none', shortest: Duration = '1ms') {
  const schema = z.union([noLimit, durationFrom(shortest)]).default(fallback)
  return { schema, expected: expectedDuration(shortest, 'none') }
}

export function durationFrom(shortest: Duration) {
  return z.string().refine((text) => {
    try {
      return milliseconds(text) >= milliseconds(shortest)
    } catch {
      return false
    }
  })
}

/** Describes a duration of at least `shortest`. `or` is a word that is also accepted. */
export function expectedDuration(shortest: Duration, or?: string): (given: unknown) => string {
  return (given) => {
    const isNumber = /^\d+(\.\d+)?$/.test(String(given)) && Number(given) > 0
    const least = shortest === '1ms' ? '' : ` of at least "${shortest}"`
    return `a duration${least} such as "${isNumber ? `${given}s` : '30s'}"${or === undefined ? '' : `, or "${or}"`}`
  }
}
