// Resources that count how often they are opened, and append their names to a file when they are closed.
import { appendFileSync } from 'node:fs'

let opened = 0
const closing = (name: string) => {
  const file = process.env['BULLPEN_TEST_CLOSED']
  if (file !== undefined) appendFileSync(file, `${name}\n`)
}

export default {
  first: { open: () => ({ opened: ++opened }), close: () => closing('first') },
  second: { open: async () => ({ name: `second, after ${opened}` }), close: async () => closing('second') },
}
