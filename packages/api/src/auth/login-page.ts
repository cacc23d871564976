// What a browser without a session sees instead of a page: a field for the key.
import { PAGE_POLICY } from '../http/security-headers.ts'

/** Pages that somebody may open by hand; where they want to go is one of the login link's two destinations. */
export function loginPage(wanted: string): string {
  const next = wanted.startsWith('/reference') ? '/reference' : '/board/'
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Bullpen: log in</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; display: grid; place-content: center; min-height: 90vh; color-scheme: light dark }
  form { display: flex; gap: .5rem } input, button { font: inherit; padding: .4rem .7rem } input { width: 24rem; max-width: 60vw }
</style>
<h1>Bullpen</h1>
<form action="/board/login">
  <input type="hidden" name="next" value="${next}">
  <input type="password" name="key" aria-label="Key" placeholder="One of the API's keys" autocomplete="current-password" autofocus required>
  <button>Log in</button>
</form>
</html>
`
}

export const LOGIN_PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': PAGE_POLICY,
  'www-authenticate': 'Bearer realm="bullpen"',
} as const
