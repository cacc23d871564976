// Handles math.factorial.
import { defineHandler } from '@bullpen/contract'
import { mathFactorial } from '@bullpen/tasks'

export default defineHandler(mathFactorial, import.meta.url, ({ input: { n } }) => {
  let value = 1n
  for (let factor = 2n; factor <= n; factor++) value *= factor
  return { value: value.toString() }
})
