// Tests that every text field of every request body refuses texts that could break a script or a terminal, so that a new field does, too.
import { expect, test } from 'vitest'
import { testApi } from '../api.fixture.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

/** The values that a field gets: an object with this field alone around the text. */
type Wrap = (text: unknown) => unknown

interface Field {
  readonly place: string
  readonly wrap: Wrap
}

const ODD = ['Ann \ud83d', 'a\0b', 'a\u001b[31m']
const HARMLESS_OR_REFUSED = ['__proto__', 'constructor', 'a\u202eb', 'a\nb', '{}', '😀']

/** Returns the text fields of a schema, without those of a task's input, which is the contract's own. */
function fieldsOf(
  document: Document,
  schema: Schema,
  place = '',
  wrap: Wrap = (text) => text,
  refs: readonly string[] = [],
): Field[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? ''
    const target = document.components.schemas[name]
    return target === undefined || refs.includes(name) ? [] : fieldsOf(document, target, place, wrap, [...refs, name])
  }
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((part) =>
    fieldsOf(document, part, place, wrap, refs),
  )
  if (schema.type === 'string' && schema.enum === undefined && schema.const === undefined) inner.push({ place, wrap })
  if (schema.items !== undefined)
    inner.push(...fieldsOf(document, schema.items, `${place}/0`, (text) => wrap([text]), refs))
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (name === 'input') continue
    inner.push(...fieldsOf(document, property, `${place}/${name}`, (text) => wrap({ [name]: text }), refs))
  }
  if (typeof schema.additionalProperties === 'object') {
    inner.push({ place: `${place}/{name}`, wrap: (text) => wrap({ [String(text)]: 'x' }) })
    inner.push(...fieldsOf(document, schema.additionalProperties, `${place}/x`, (text) => wrap({ x: text }), refs))
  }
  return inner
}

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

test('no text field of a body accepts half a surrogate pair, NUL or ESC, and odd names are never answered with a server error', async () => {
  const { ask, broker } = await testApi()
  const document: Document = (await ask({ method: 'GET', url: '/openapi.json' })).json()
  const seen: string[] = []
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [verb, { requestBody }] of Object.entries(operations)) {
      const schema = requestBody?.content['application/json']?.schema
      if (schema === undefined) continue
      const method = verb.toUpperCase() as 'POST'
      const url = path.replaceAll(/\{\w+\}/g, 'x')
      for (const { place, wrap } of fieldsOf(document, schema)) {
        seen.push(place)
        for (const odd of [...ODD, ...HARMLESS_OR_REFUSED]) {
          const body = wrap(odd)
          const whole =
            place.startsWith('/') && !place.startsWith('/0')
              ? { task: 'email.welcome', input: { to: 'a@b.co' }, ...(body as object) }
              : body
          const answer = await ask({
            method,
            url,
            headers: { 'content-type': 'application/json' },
            payload: JSON.stringify(whole),
          })
          const where = `${method} ${path} ${place} ${JSON.stringify(odd)}: ${answer.body}`
          expect(answer.statusCode, where).toBeLessThan(500)
          if (ODD.includes(odd)) expect(answer.statusCode, where).toBeGreaterThanOrEqual(400)
        }
      }
    }
  }
  expect(seen).toEqual(
    expect.arrayContaining(['/by', '/meta/x', '/meta/{name}', '/unique/key', '/concurrencyKey', '/text']),
  )
  expect(broker.enqueued.length).toBeGreaterThan(0)
})
