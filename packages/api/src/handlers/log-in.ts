// GET /board/login: turns a key in a link into a browser's session, since a browser can't send a key when it loads a page.
import { BullpenError } from '@bullpen/contract'
import { z } from 'zod'
import { originOf, SESSION_COOKIE } from '../auth/access.ts'
import type { Keyring } from '../auth/keyring.ts'
import type { Call } from '../http/route.ts'

const SESSION_S = 12 * 60 * 60

/** A fixed list: a link with a free destination could send people anywhere from our address. */
export const loginQuerySchema = z.strictObject({
  key: z.string().max(512).describe('One of the keys that open the API.'),
  next: z.enum(['/board/', '/reference']).default('/board/').describe('Where to go from here.'),
})

export interface LoginOptions {
  readonly keyring: Keyring
  readonly now: () => number
  /** Whether the cookie goes over https alone; browsers count http://localhost as such. */
  readonly secure: boolean
}

export function logIn({ keyring, now, secure }: LoginOptions) {
  return async ({ query, request, reply }: Call<unknown, z.output<typeof loginQuerySchema>>) => {
    const key = keyring.find(query.key, originOf(request))
    if (key === undefined) throw new BullpenError('unauthorized', 'the key in this link is not a key of this API')
    reply
      .setCookie(SESSION_COOKIE, keyring.issueSession(key, now() + SESSION_S * 1_000), {
        path: '/',
        httpOnly: true,
        sameSite: 'lax',
        secure,
        maxAge: SESSION_S,
      })
      .redirect(query.next, 303)
    return reply
  }
}
