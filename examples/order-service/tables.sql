create schema if not exists shop;

create table if not exists shop.products (
  sku text primary key,
  stock integer not null check (stock >= 0)
);

create table if not exists shop.orders (
  id text primary key,
  sku text not null references shop.products,
  amount_cents integer not null check (amount_cents > 0),
  currency text not null
);

-- Money that came in. Deliberately without a unique order: if an order were ever booked twice, it would
-- be seen here. Nothing but the inbox keeps that from happening.
create table if not exists shop.ledger (
  entry bigint generated always as identity primary key,
  order_id text not null references shop.orders,
  amount_cents integer not null
);
