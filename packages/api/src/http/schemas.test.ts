// Tests that the check of bodies without options agrees with the schema.
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { enqueueBodySchema } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { bodyError } from './schemas.ts'

const square = defineTask({ name: 'math.square', queue: 'cpu', input: z.object({ n: z.int() }) })
const anything = defineTask({ name: 'any.thing', queue: 'cpu', input: z.unknown() })
const list = defineTask({ name: 'math.list', queue: 'cpu', input: z.array(z.int()).optional() })
const catalogue = defineCatalogue(square, anything, list)
const schema = enqueueBodySchema(catalogue)

const oneOf = (...values: readonly unknown[]) => fc.constantFrom(...values)
const body = fc.record(
  {
    task: oneOf(square.name, anything.name, list.name, 'math.cube', 'toString', 7, null),
    input: oneOf({ n: 4 }, { n: '4' }, {}, [1], ['a'], null, 4, ''),
    priority: oneOf(3, 10),
    tags: oneOf(['a'], ['a b']),
    onEnd: oneOf([], [{ task: square.name, input: {} }], [{}]),
    delya: oneOf('5s'),
  },
  { requiredKeys: [] },
)

test('a body is accepted if it matches the schema, with or without options', () => {
  fc.assert(
    fc.property(fc.oneof(body, fc.jsonValue()), (given) => {
      expect(bodyError(catalogue, schema, given) === undefined).toBe(schema.safeParse(given).success)
    }),
    {
      numRuns: 1_000,
      examples: [
        [{ task: square.name, input: { n: 4 } }],
        [{ task: list.name }],
        [{ task: list.name, delya: '5s' }],
        [{ task: square.name, delya: '5s' }],
      ],
    },
  )
})
