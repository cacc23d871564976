// Finds the parts of an input schema that accept only values that JSON cannot represent, such as Dates.
//
// A task's input is stored as JSON and parsed again by the worker. A schema such as z.date() would therefore accept a Date from a
// producer in TypeScript but reject the string that the Date becomes when it is stored.
import { z } from 'zod'

/** What to use in place of each type. */
const INSTEAD: Readonly<Record<string, string>> = {
  date: 'z.iso.datetime() for a string, or z.coerce.date() for a handler that needs a Date',
  bigint: 'z.string(), or z.coerce.bigint() for a handler that needs a bigint',
  map: 'z.record()',
  set: 'z.array()',
  symbol: 'z.string()',
  nan: 'z.number().nullable()',
  file: 'z.string() with the name or the URL of the file',
  function: 'z.string()',
  promise: 'the schema of the value that the promise resolves to',
}

/**
 * Returns a sentence about the first part of the schema that accepts only values that JSON cannot represent. Returns undefined if
 * there is none. Coerced types and the schemas after `z.preprocess` are accepted, because they can convert JSON.
 */
export function notJson(schema: z.ZodType): string | undefined {
  const converted: string[] = []
  const found: { readonly path: string; readonly type: string }[] = []
  z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema, path }) {
      const { def } = zodSchema._zod
      const place = path.join('/')
      if (def.type === 'pipe' && 'in' in def && (def.in as z.ZodType).type === 'transform') converted.push(place)
      if (def.type in INSTEAD && !('coerce' in def && def.coerce === true)) found.push({ path: place, type: def.type })
    },
  })
  const first = found.find(({ path }) => !converted.some((place) => path === place || path.startsWith(`${place}/`)))
  if (first === undefined) return undefined
  return `input${dotted(first.path)} is z.${first.type}(), which JSON cannot represent; use ${INSTEAD[first.type]}`
}

/** Returns a path in a JSON Schema as a path in the input: `properties/a/items` is `.a[]`. */
function dotted(path: string): string {
  return path
    .replaceAll(/(^|\/)properties\/([^/]+)/g, '.$2')
    .replaceAll(/\/?(items|prefixItems\/\d+)/g, '[]')
    .replaceAll(/\/?additionalProperties/g, '[*]')
    .replaceAll(/\/?(anyOf|allOf|oneOf)\/\d+/g, '')
}
