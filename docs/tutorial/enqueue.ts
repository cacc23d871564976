import { createClient } from '@bullpen/client'
import { welcome } from './catalogue.ts'

const client = createClient({ baseUrl: 'http://127.0.0.1:8080', key: process.env['BULLPEN_KEY'] ?? '' })
const { id } = await client.enqueue(welcome, { to: 'ann@example.com', name: 'Ann' })
const { greeting } = await client.result(welcome, id, { timeout: '10s' })
console.log(id, greeting)
