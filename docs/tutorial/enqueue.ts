import { createClient, http } from '@bullpen/client'
import { welcome } from './catalogue.ts'

const client = createClient({ transport: http('http://127.0.0.1:8080', process.env['BULLPEN_KEY'] ?? '') })
const task = await client.enqueue(welcome, { to: 'ann@example.com', name: 'Ann' })
const { greeting } = await task.result({ timeout: '10s' })
console.log(task.id, greeting)
